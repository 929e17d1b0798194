-- Readers: what every tick and every batch asks of a queue's event tables, as functions of the queue's own.
--
-- What this topic guarantees
--   * A reader has its tables' names in static SQL, so that a session plans it once. As dynamic SQL, which one
--     function for all queues would need, planning takes five times as long as running.
--   * A reader touches the slots it is told to, and no other, by their index. Its plan is made while the tables may
--     be empty and used when they are large, so it must not depend on their size.
--   * A queue has its readers for as long as it has its event tables.

-- Makes the readers of a queue, or makes them anew:
--   event_<id>_slots  slots with rows of some transactions, as of probe
--   event_<id>_size   number of events of a batch and bytes of their data, up to i_max rows of a slot
--   event_<id>_few    events of a batch, unordered; NULL when there are more than i_max, or i_max_bytes of text or more,
--                     and they are to be read by a query
-- Parameters of all of them are the transactions, as of window_ranges; of the latter two the slots, the subscription,
-- the id of the last event that is settled, and which slot of how many the consumer is, or NULL.
create or replace function pgque_internal.write_readers(i_queue_id int4) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $do$
declare
    v_name    text := 'pgque_internal.event_' || i_queue_id;
    -- A plan for any number of rows looks expensive: without these it would start workers and compile. And it is to
    -- stop with the rows that are wanted: a bitmap has all of the window first.
    v_options text := 'language plpgsql set enable_seqscan = off'
                      ' set enable_bitmapscan = off set plan_cache_mode = force_generic_plan'
                      ' set max_parallel_workers_per_gather = 0 set jit = off as $reader$';
    v_filter  text := ' and (e.ev_owner is null or e.ev_owner = i_owner) and (i_after is null or e.ev_id > i_after)'
                      ' and (i_part is null or pgque.slot_of(e.ev_extra1, i_parts) = i_part)';
    -- Only the columns that are wanted: taking a row apart costs more than finding it.
    v_window  text := 'select e.* from unnest(i_lo, i_hi) r (lo, hi) cross join lateral ('
                      'select %s from %s e where e.ev_txid >= r.lo and e.ev_txid < r.hi' || v_filter || ' offset 0) e';
    -- Nearly always there is one range, and a join with it takes longer than the look.
    v_range   text := 'select %s from %s e where e.ev_txid >= i_lo[1] and e.ev_txid < i_hi[1]' || v_filter;
    -- Lengths of what lies outside of the row are known without reading it, and what is large stays there.
    v_add     text := $body$
                        i_max := i_max - 1;
                        i_max_bytes := i_max_bytes - coalesce(octet_length(v_event.ev_data), 0)
                            - coalesce(octet_length(v_event.ev_type), 0) - coalesce(octet_length(v_event.ev_extra1), 0)
                            - coalesce(octet_length(v_event.ev_extra2), 0) - coalesce(octet_length(v_event.ev_extra3), 0)
                            - coalesce(octet_length(v_event.ev_extra4), 0);
                        if i_max < 0 or i_max_bytes <= 0 then
                            return null;
                        end if;
                        v_events := v_events || v_event;$body$;
    v_leaf    text;
    v_bit     int4 := 1;
    v_slots   text := '';
    v_slot    text := '0';
    v_size    text := '';
    v_few     text := '';
begin
    foreach v_leaf in array pgque_internal.leaves('pgque.event_' || i_queue_id) loop
        v_slots := v_slots || format($body$
            perform from unnest(i_lo, i_hi) r (lo, hi) cross join lateral (
                select from %s e where e.ev_txid >= r.lo and e.ev_txid < r.hi order by e.ev_txid limit 1) e limit 1;
            if found then
                v_slots := v_slots | %s;
            end if;$body$, v_leaf, v_bit);
        v_slot := v_slot || format(
            ' | exists (select from %s e where e.ev_txid >= i_lo[1] and e.ev_txid < i_hi[1])::int4 * %s', v_leaf, v_bit);
        v_size := v_size || format($body$
            if i_slots & %s <> 0 then
                if cardinality(i_lo) = 1 then
                    select n + count(*), bytes + coalesce(sum(octet_length(e.ev_data)), 0) into n, bytes
                    from (%s limit i_max) e;
                else
                    select n + count(*), bytes + coalesce(sum(octet_length(e.ev_data)), 0) into n, bytes
                    from (%s limit i_max) e;
                end if;
            end if;$body$, v_bit, format(v_range, 'e.ev_data', v_leaf), format(v_window, 'e.ev_data', v_leaf));
        v_few := v_few || format($body$
            if i_slots & %1$s <> 0 then
                if cardinality(i_lo) = 1 then
                    for v_event in %2$s loop %4$s end loop;
                else
                    for v_event in %3$s loop %4$s end loop;
                end if;
            end if;$body$, v_bit, format(v_range, 'e.*', v_leaf), format(v_window, 'e.*', v_leaf), v_add);
        v_bit := v_bit * 2;
    end loop;

    execute format('create or replace function %s_slots(i_lo xid8[], i_hi xid8[]) returns int4 %s'
                   ' declare v_slots int4 := 0; begin'
                   ' if cardinality(i_lo) = 1 then return %s; end if;'
                   ' %s return v_slots; end $reader$', v_name, v_options, v_slot, v_slots);
    execute format('create or replace function %s_size(i_slots int4, i_lo xid8[], i_hi xid8[], i_owner int4,'
                   ' i_after bigint, i_part int4, i_parts int4, i_max bigint, out n bigint, out bytes bigint) %s'
                   ' begin n := 0; bytes := 0; %s end $reader$', v_name, v_options, v_size);
    execute format('create or replace function %s_few(i_slots int4, i_lo xid8[], i_hi xid8[], i_owner int4,'
                   ' i_after bigint, i_part int4, i_parts int4, i_max int4, i_max_bytes bigint)'
                   ' returns pgque.event_template[] %s'
                   ' declare v_events pgque.event_template[] := ''{}''; v_event pgque.event_template;'
                   ' begin %s return v_events; end $reader$', v_name, v_options, v_few);
    execute format('revoke all on function %1$s_slots, %1$s_size, %1$s_few from public', v_name);
end
$do$;

-- Removes the readers of a queue whose event tables are gone.
create or replace function pgque_internal.drop_readers(i_queue_id int4) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('drop function if exists %1$s_slots, %1$s_size, %1$s_few', 'pgque_internal.event_' || i_queue_id);
end
$$;

-- Makes the readers of queues that have none: those which a session of the last release has made while another one
-- upgraded the engine. A step of maint().
--   result  0
create or replace function pgque_internal.check_readers() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgque_internal.write_readers(q.queue_id)
    from pgque.queue q
    where to_regproc('pgque_internal.event_' || q.queue_id || '_few') is null;
    return 0;
end
$$;

-- Queues of earlier releases have none, or others.
do $$
declare
    v_id int4;
begin
    for v_id in select q.queue_id from pgque.queue q loop
        perform pgque_internal.write_readers(v_id);
    end loop;
end
$$;
