-- Repair of a queue that was restored into a cluster with lower transaction ids.
--
-- What this topic guarantees
--   * Everything a consumer had not settled is delivered to it again, once, in its order; what it had settled is
--     not.
--   * A queue that needs no repair is left alone.

-- Whether a queue bears transaction ids that this cluster has not reached: of its newest tick, of its last rotation,
-- or of an event that is complete all the same.
create or replace function pgque_internal.is_from_the_future(i_queue pgque.queue, i_newest pgque.tick) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_leaf  text;
    v_found boolean;
begin
    if greatest(pg_snapshot_xmax(i_newest.tick_snapshot)::text::bigint, i_queue.queue_switch_step1 + 1,
                i_queue.queue_switch_step2 + 1) > pg_snapshot_xmax(pg_current_snapshot())::text::bigint then
        return true;
    end if;
    foreach v_leaf in array pgque_internal.leaves(i_queue.queue_data_pfx) loop
        execute format('select exists (select from %s e where e.ev_txid >= pg_snapshot_xmax(pg_current_snapshot()))', v_leaf)
        into v_found;
        if v_found then
            return true;
        end if;
    end loop;
    return false;
end
$$;

-- Makes a queue usable again after its database was restored, by a dump, into a cluster whose transaction ids are
-- lower than those its events and ticks carry; until then its ticks are refused ('Invalid PgQ state'). Nobody else
-- may use the queue meanwhile: its tables are locked.
--   i_queue_name  queue
--   result        number of events appended anew for consumers that had not settled them; NULL when the queue
--                 needed no repair
create or replace function pgque.repair_queue(i_queue_name text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue  pgque.queue;
    v_last   pgque.tick;
    v_leaf   text;
    v_sub    record;
    v_cursor pgque_internal.cursor;
    v_tick   bigint;
    v_xid    bigint := pg_current_xact_id()::text::bigint;
    v_made   bigint;
    v_here   xid8;
    v_count  bigint;
begin
    perform pgque_internal.require_read_committed('repair_queue');
    select * into v_queue from pgque.queue q where q.queue_name = i_queue_name for update;
    if not found then
        raise exception 'queue not found: %', i_queue_name;
    end if;
    v_last := pgque_internal.newest_tick(v_queue.queue_id);
    if v_last.tick_id is null or not pgque_internal.is_from_the_future(v_queue, v_last) then
        return null;
    end if;
    foreach v_leaf in array pgque_internal.leaves(v_queue.queue_data_pfx) loop
        execute format('lock table %s in access exclusive mode', v_leaf);
    end loop;

    -- Where the newest tick is of the other cluster, nobody has seen what was appended since the restore: by ids
    -- drawn after that tick, or, where a redelivery keeps its old one, by a transaction of this cluster. That one
    -- came after the table had been made here, and the row bears it, or a subtransaction of it.
    v_here := case when pg_snapshot_xmax(v_last.tick_snapshot) > pg_snapshot_xmax(pg_current_snapshot())
                   then pg_snapshot_xmax(pg_current_snapshot()) else '0' end;
    select v_xid - age(a.xmin) into v_made from pg_attribute a
    where a.attrelid = 'pgque.event_template'::regclass and a.attname = 'ev_id';

    -- What else is not settled, by the old transaction ids: of a member of a group its open batch, of everybody
    -- else all behind its position.
    create temporary table repaired (like pgque.event_template) on commit drop;
    for v_sub in
        select s.sub_id, s.sub_part, s.sub_parts, s.sub_role = 'coop_member' as member, c.cur_prefix,
               t0.tick_snapshot as seen, t1.tick_snapshot as opened
        from pgque_internal.sub s
        cross join lateral pgque_internal.newest_cursor(s.sub_no) c
        cross join lateral (
            select t.tick_snapshot from pgque.tick t
            where t.tick_queue = s.sub_queue and t.tick_id = c.cur_last_tick limit 1
        ) t0
        left join lateral (
            select t.tick_snapshot from pgque.tick t
            where t.tick_queue = s.sub_queue and t.tick_id = c.cur_next_tick limit 1
        ) t1 on true
        where s.sub_queue = v_queue.queue_id
    loop
        foreach v_leaf in array pgque_internal.leaves(v_queue.queue_data_pfx) loop
            execute format($query$
                insert into pg_temp.repaired
                select e.ev_id, e.ev_time, e.ev_txid, $1, e.ev_retry, e.ev_type, e.ev_data, e.ev_extra1, e.ev_extra2,
                       e.ev_extra3, e.ev_extra4, e.ev_queue, $2
                from %s e
                where (not pg_visible_in_snapshot(e.ev_txid, $3)
                           and (not $4 or pg_visible_in_snapshot(e.ev_txid, $5))
                           and ($6 is null or e.ev_id > $6 or not pg_visible_in_snapshot(e.ev_txid, $5))
                       or not $4 and e.ev_txid < $9
                           and case when e.ev_owner is null then e.ev_id > $10
                                    else e.ev_txid::text::bigint between $11 and $12 - age(e.xmin) end)
                  and (e.ev_owner is null or e.ev_owner = $1)
                  and ($7 is null or pgque.slot_of(e.ev_extra1, $7) = $8)
                $query$, v_leaf)
            using v_sub.sub_id, v_queue.queue_cur_table, v_sub.seen, v_sub.member, v_sub.opened, v_sub.cur_prefix,
                v_sub.sub_parts, v_sub.sub_part, v_here, v_last.tick_event_seq, v_made, v_xid;
        end loop;
    end loop;

    foreach v_leaf in array pgque_internal.leaves(v_queue.queue_data_pfx) loop
        execute format('truncate table %s', v_leaf);
    end loop;
    delete from pgque.tick t where t.tick_queue = v_queue.queue_id;
    v_tick := nextval(v_queue.queue_tick_seq::regclass);
    insert into pgque.tick (tick_queue, tick_id, tick_event_seq, tick_event_slots)
    values (v_queue.queue_id, v_tick, v_last.tick_event_seq, 0);
    for v_sub in select s.sub_no, s.sub_role from pgque_internal.sub s where s.sub_queue = v_queue.queue_id loop
        v_cursor := pgque_internal.newest_cursor(v_sub.sub_no);
        perform pgque_internal.append_cursor(v_sub.sub_no, v_cursor.cur_seq,
                                             case when v_sub.sub_role <> 'coop_member' then v_tick end, null, null, null);
    end loop;
    insert into pgque.event (ev_id, ev_time, ev_txid, ev_owner, ev_retry, ev_type, ev_data,
                             ev_extra1, ev_extra2, ev_extra3, ev_extra4, ev_queue, ev_slot)
    select r.ev_id, r.ev_time, pg_current_xact_id(), r.ev_owner, r.ev_retry, r.ev_type, r.ev_data,
           r.ev_extra1, r.ev_extra2, r.ev_extra3, r.ev_extra4, r.ev_queue, r.ev_slot
    from pg_temp.repaired r;
    get diagnostics v_count = row_count;
    drop table pg_temp.repaired;
    update pgque.queue q
    set queue_first_tick = v_tick,
        queue_switch_step1 = pg_current_xact_id()::text::bigint,
        queue_switch_step2 = pg_current_xact_id()::text::bigint
    where q.queue_id = v_queue.queue_id;
    update pgque.partition_consumer p set last_tick = v_tick where p.queue_id = v_queue.queue_id and p.next_n is not null;
    return v_count;
end
$$;
