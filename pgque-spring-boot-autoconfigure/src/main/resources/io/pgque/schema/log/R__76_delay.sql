-- Delayed events: sent now, appended to their queue when they are due.
--
-- What this topic guarantees
--   * An event is delivered once, by the first pass at or after its time that sees it committed, and with the next
--     tick then; no number of waiting events makes a send, a tick or a pass slower.
--   * What is to be delivered is a matter of rows alone: delivering deletes the row in the same transaction, cancelling
--     deletes it too, and whoever comes second finds nothing. A mark says from where on a pass need look; were it lost
--     or wrong, nothing would be delivered twice.
--   * A transaction that commits after its event was due is found by its id, not by the time: passes need not look
--     back, over rows that are gone but can't be cleaned away while some session holds a snapshot.
--   * A row that can't be delivered is set aside, with the error in it, and blocks no other; one that is being
--     cancelled is passed over until that is settled. Nobody waits for anybody.
--   * Slots are truncated once all their rows are gone.

-- Widths of the cells of time, in seconds: one for each ring of three slots, the narrowest first.
create or replace function pgque_internal.delay_widths() returns float8[]
language sql immutable
as $$
    select '{900, 10800, 129600, 1555200, 18662400}'::float8[]
$$;

-- Slot for an event: of the narrowest ring in whose present or next cell it is due. Any slot would be right; this
-- one empties soon after the event is due, compared with its delay.
--   i_due  when it is due
--   i_now  the time
create or replace function pgque_internal.delay_slot(i_due timestamptz, i_now timestamptz) returns int2
language plpgsql immutable
as $$
declare
    v_widths constant float8[] := pgque_internal.delay_widths();
    v_now    constant float8 := pg_catalog.date_part('epoch', i_now);
    v_due    constant float8 := pg_catalog.date_part('epoch', greatest(i_due, i_now));
begin
    for i in 1 .. pg_catalog.cardinality(v_widths) loop
        if pg_catalog.floor(v_due / v_widths[i]) <= pg_catalog.floor(v_now / v_widths[i]) + 1 then
            return 3 * (i - 1) + pg_catalog.floor(v_due / v_widths[i])::bigint % 3;
        end if;
    end loop;
    return 15;
end
$$;

-- Slots whose cells are over: nothing new comes in until their turn.
--   i_now  the time
create or replace function pgque_internal.past_delay_slots(i_now timestamptz) returns int2[]
language sql immutable
as $$
    select pg_catalog.array_agg(3 * (n - 1) + (pg_catalog.floor(pg_catalog.date_part('epoch', i_now) / width)::bigint + 2) % 3)
    from pg_catalog.unnest(pgque_internal.delay_widths()) with ordinality w (width, n)
$$;

-- Stores an event until it is due, or appends it at once when it is.
--   i_deliver_at  when it is due; error 23502 when NULL
--   result        id of the delayed event, or of the event
create or replace function pgque_internal.delay_event(
    i_queue text, i_type text, i_data text, i_deliver_at timestamptz,
    i_extra1 text, i_extra2 text, i_extra3 text, i_extra4 text)
returns bigint
language plpgsql
as $$
declare
    v_now timestamptz := pg_catalog.clock_timestamp();
    v_id  bigint;
begin
    if i_deliver_at is null then
        raise exception 'time of delivery must not be null' using errcode = 'not_null_violation';
    end if;
    if i_deliver_at <= v_now then
        return pgque.insert_event(i_queue, i_type, i_data, i_extra1, i_extra2, i_extra3, i_extra4);
    end if;
    perform pgque_internal.writable_queue(i_queue);
    insert into pgque_internal.delayed (de_id, de_slot, de_deliver_at, de_queue_name, de_type, de_data,
                                        de_extra1, de_extra2, de_extra3, de_extra4)
    values (pg_catalog.nextval('pgque.delayed_events_de_id_seq'), pgque_internal.delay_slot(i_deliver_at, v_now),
            i_deliver_at, i_queue, i_type, i_data, i_extra1, i_extra2, i_extra3, i_extra4)
    returning de_id into v_id;
    return v_id;
end
$$;

-- Sends one event at a time.
--   i_queue       queue; errors as of pgque.send
--   i_type        event type
--   i_payload     data; stored as its canonical text
--   i_deliver_at  when it is due: it is delivered with the first tick after that
--   result        id of the delayed event, for cancel_delayed; when it is due already, it is sent at once, and the
--                 result is its event id
create or replace function pgque.send_at(i_queue text, i_type text, i_payload jsonb, i_deliver_at timestamptz)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.delay_event(i_queue, i_type, i_payload::text, i_deliver_at, null, null, null, null);
end
$$;

-- Same, with data that is stored as it is.
create or replace function pgque.send_at(i_queue text, i_type text, i_payload text, i_deliver_at timestamptz)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.delay_event(i_queue, i_type, i_payload, i_deliver_at, null, null, null, null);
end
$$;

-- Sends one event at a time, with a partition key and other extra columns.
--   i_queue, i_type, i_payload, i_deliver_at, result  as of send_at without them
--   i_partition_key     key, stored in extra1
--   i_extra2..i_extra4  extra columns, as of insert_event
create or replace function pgque.send_at(
    i_queue text, i_type text, i_payload jsonb, i_deliver_at timestamptz, i_partition_key text,
    i_extra2 text default null, i_extra3 text default null, i_extra4 text default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.delay_event(i_queue, i_type, i_payload::text, i_deliver_at, i_partition_key,
                                      i_extra2, i_extra3, i_extra4);
end
$$;

-- Same, with data that is stored as it is.
create or replace function pgque.send_at(
    i_queue text, i_type text, i_payload text, i_deliver_at timestamptz, i_partition_key text,
    i_extra2 text default null, i_extra3 text default null, i_extra4 text default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.delay_event(i_queue, i_type, i_payload, i_deliver_at, i_partition_key, i_extra2, i_extra3, i_extra4);
end
$$;

-- Sends one event after a delay, counted from this call.
--   i_queue          queue; errors as of pgque.send
--   i_type           event type
--   i_payload        data; stored as its canonical text
--   i_delay          delay; none or a negative one sends at once
--   i_partition_key  partition key, stored in extra1
--   result           as of send_at
create or replace function pgque.send_after(
    i_queue text, i_type text, i_payload jsonb, i_delay interval, i_partition_key text default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.delay_event(i_queue, i_type, i_payload::text, clock_timestamp() + i_delay, i_partition_key,
                                      null, null, null);
end
$$;

-- Same, with data that is stored as it is.
create or replace function pgque.send_after(
    i_queue text, i_type text, i_payload text, i_delay interval, i_partition_key text default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.delay_event(i_queue, i_type, i_payload, clock_timestamp() + i_delay, i_partition_key,
                                      null, null, null);
end
$$;

-- Cancels a delayed event, one that was set aside included. When it is being delivered right now, that is waited for.
--   i_queue  queue
--   i_id     delayed event, as returned by send_at or send_after
--   result   1: it will not be delivered; 0: it was delivered or cancelled before, or never existed in this queue
create or replace function pgque.cancel_delayed(i_queue text, i_id bigint) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from pgque_internal.delayed d where d.de_id = i_id and d.de_queue_name = i_queue;
    return found::int4;
end
$$;

-- ---------------------------------------------------------------------------------------------------
-- Delivery
-- ---------------------------------------------------------------------------------------------------

-- Newest mark; NULL when there is none.
create or replace function pgque_internal.newest_mark() returns pgque_internal.delay_mark
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select m.* from pgque_internal.delay_mark m order by m.mark_no desc limit 1
$$;

-- Rows that are due and that a mark does not say to be gone.
--   i_mark              mark to start from; NULL: none
--   i_until             time to look up to
--   i_snapshot          what is visible now
--   i_limit             most rows
--   slots, ids, places  the rows
--   until               time up to which these are all; NULL: unknown
-- The tables may have grown by millions since they were last analysed, if ever: only their indexes are an option, and
-- one plan is as good as the next.
create or replace function pgque_internal.due_delayed(
    i_mark pgque_internal.delay_mark, i_until timestamptz, i_snapshot pg_snapshot, i_limit int4,
    out slots int2[], out ids bigint[], out places tid[], out until timestamptz)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_from timestamptz := '-infinity';
    v_late record;
    v_some record;
begin
    slots := '{}';
    ids := '{}';
    places := '{}';
    -- No mark, or one of a cluster whose transaction ids were higher: look at everything.
    if pg_snapshot_xmax(i_mark.mark_snapshot) <= pg_snapshot_xmax(i_snapshot) then
        -- The clock may have been set back.
        v_from := least(i_mark.mark_due, i_until);

        select w.lo, w.hi into v_late from pgque_internal.window_ranges(i_mark.mark_snapshot, i_snapshot) w;
        if cardinality(v_late.lo) > 0 then
            select array_agg(d.de_slot) as slots, array_agg(d.de_id) as ids, array_agg(d.place) as places into v_some
            from (
                select d.*
                from unnest(v_late.lo, v_late.hi) r (lo, hi)
                cross join lateral (
                    -- One that ran at the mark stands alone, and may have loaded a million: no walk through those.
                    select d.de_slot, d.de_id, d.ctid as place from pgque_internal.delayed d
                    where d.de_xid = r.lo and d.de_deliver_at < v_from
                    union all
                    select d.de_slot, d.de_id, d.ctid as place from pgque_internal.delayed d
                    where d.de_xid > r.lo and d.de_xid < r.hi and d.de_deliver_at < v_from
                    offset 0
                ) d
                limit i_limit
            ) d;
            slots := slots || v_some.slots;
            ids := ids || v_some.ids;
            places := places || v_some.places;
        end if;
        if cardinality(i_mark.mark_left) > 0 then
            select array_agg(d.de_slot) as slots, array_agg(d.de_id) as ids, array_agg(d.ctid) as places into v_some
            from pgque_internal.delayed d
            where d.de_id = any (i_mark.mark_left) and d.de_deliver_at <= i_until;
            slots := slots || v_some.slots;
            ids := ids || v_some.ids;
            places := places || v_some.places;
        end if;
        if cardinality(ids) >= i_limit then
            return;
        end if;
    end if;
    select array_agg(d.de_slot) as slots, array_agg(d.de_id) as ids, array_agg(d.place) as places,
           max(d.de_deliver_at) as last, count(*) >= i_limit as more
    into v_some
    from (
        select d.de_slot, d.de_id, d.ctid as place, d.de_deliver_at from pgque_internal.delayed d
        where d.de_deliver_at >= v_from and d.de_deliver_at <= i_until
        order by d.de_deliver_at
        limit i_limit
    ) d;
    slots := slots || v_some.slots;
    ids := ids || v_some.ids;
    places := places || v_some.places;
    until := case when v_some.more then v_some.last else i_until end;
end
$$;

-- Sends delayed events, in the order in which they were due, passing over those that another session has locked. One
-- whose queue is gone or takes no events is set aside, to be tried again after ten minutes, then at growing distances
-- up to a day.
--   i_slots, i_ids, i_places  the rows
--   i_error                   NULL; a reason sets all of them aside
--   sent                      number of events sent
--   taken                     number of rows sent or set aside
create or replace function pgque_internal.move_delayed(
    i_slots int2[], i_ids bigint[], i_places tid[], i_error text, out sent bigint, out taken bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_slot  int2;
    v_steps text := '';
    v_taken text[];
    v_aside text[];
begin
    -- By place, since that is quicker than by id; by id too, since the place of a row that was cancelled meanwhile may
    -- be another's. The place of a locked row stays its own.
    for v_slot in select distinct s from unnest(i_slots) s loop
        v_steps := v_steps || format($step$
            free_%1$s as materialized (
                select d.ctid as place
                from unnest($1, $2, $3) u (slot, id, place)
                join pgque_internal.delayed_%1$s d on d.ctid = u.place and d.de_id = u.id
                where u.slot = %1$s
                for update of d skip locked
            ),
            taken_%1$s as (
                delete from pgque_internal.delayed_%1$s d using free_%1$s f
                where d.ctid = f.place
                returning d.*
            ),$step$, v_slot);
        v_taken := v_taken || format('select * from taken_%s', v_slot);
    end loop;

    -- Events get their ids after the transaction has its own.
    perform pg_current_xact_id();
    execute format($query$
        with %s
        routed as materialized (
            select t.*, q.queue_id, q.queue_cur_table, q.queue_sequence,
                   case
                       when $4 is not null then $4
                       when q.queue_id is null then 'queue not found: ' || t.de_queue_name
                       when q.queue_disable_insert and current_setting('session_replication_role') <> 'replica'
                           then 'Insert into queue disallowed'
                   end as error
            from (%s) t
            left join pgque.queue q on q.queue_name = t.de_queue_name
            order by t.de_deliver_at, t.de_id
        ),
        sent as (
            insert into pgque.event (ev_id, ev_time, ev_txid, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4,
                                     ev_queue, ev_slot)
            select nextval(r.queue_sequence), now(), pg_current_xact_id(), r.de_type, r.de_data,
                   r.de_extra1, r.de_extra2, r.de_extra3, r.de_extra4, r.queue_id, r.queue_cur_table
            from routed r
            where r.error is null
            returning 1
        ),
        aside as (
            insert into pgque_internal.delayed (de_id, de_slot, de_deliver_at, de_queue_name, de_type, de_data,
                                                de_extra1, de_extra2, de_extra3, de_extra4, de_error, de_failed_at)
            select r.de_id, 16,
                   now() + least(greatest(now() - r.de_failed_at, interval '10 minutes'), interval '1 day'),
                   r.de_queue_name, r.de_type, r.de_data, r.de_extra1, r.de_extra2, r.de_extra3, r.de_extra4,
                   r.error, coalesce(r.de_failed_at, now())
            from routed r
            where r.error is not null
            returning de_queue_name, de_error
        )
        select (select count(*) from sent),
               (select count(*) from routed),
               (select array_agg(a.report)
                from (select format('%%s delayed events of queue "%%s" set aside: %%s', count(*), a.de_queue_name, a.de_error)
                      from aside a group by a.de_queue_name, a.de_error) a (report))
        $query$, v_steps, array_to_string(v_taken, ' union all '))
    into sent, taken, v_aside
    using i_slots, i_ids, i_places, i_error;
    for i in 1 .. coalesce(cardinality(v_aside), 0) loop
        raise warning '%', v_aside[i];
    end loop;
end
$$;

-- Sends delayed events one by one, setting aside those that fail; arguments and results as of move_delayed.
create or replace function pgque_internal.move_delayed_singly(
    i_slots int2[], i_ids bigint[], i_places tid[], out sent bigint, out taken bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_result record;
begin
    sent := 0;
    taken := 0;
    for i in 1 .. cardinality(i_ids) loop
        begin
            v_result := pgque_internal.move_delayed(array[i_slots[i]], array[i_ids[i]], array[i_places[i]], null);
        exception
            when others then
                v_result := pgque_internal.move_delayed(array[i_slots[i]], array[i_ids[i]], array[i_places[i]], sqlerrm);
        end;
        sent := sent + v_result.sent;
        taken := taken + v_result.taken;
    end loop;
end
$$;

-- One pass: sends what is due, unless another session is at it.
--   i_mark  whether to write a mark even when nothing was due, so that the next passes have less to look at
--   result  number of events sent
create or replace function pgque_internal.deliver_delayed(i_mark boolean) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_mark     pgque_internal.delay_mark := pgque_internal.newest_mark();
    v_seq      bigint := pg_sequence_last_value('pgque.delayed_events_de_id_seq');
    v_snapshot pg_snapshot;
    v_due      record;
    v_result   record;
    v_sent     bigint := 0;
    v_left     bigint[] := '{}';
begin
    if v_seq is null then
        return 0;
    end if;
    -- Look before locking: a look writes nothing. After many new events a mark saves the next pass from looking at them
    -- all for those that come late.
    if not i_mark and v_seq - coalesce(v_mark.mark_seq, 0) < 10000 then
        v_due := pgque_internal.due_delayed(v_mark, clock_timestamp(), pg_current_snapshot(), 1);
        if v_due.ids = '{}' then
            return 0;
        end if;
    end if;
    begin
        lock table pgque_internal.delay_mark in share row exclusive mode nowait;
    exception
        when lock_not_available then
            return 0;
    end;

    v_mark := pgque_internal.newest_mark();
    v_seq := pg_sequence_last_value('pgque.delayed_events_de_id_seq');
    v_snapshot := pgque_internal.tick_snapshot();
    v_due := pgque_internal.due_delayed(v_mark, clock_timestamp(), v_snapshot, 100000);
    if v_due.ids <> '{}' then
        begin
            v_result := pgque_internal.move_delayed(v_due.slots, v_due.ids, v_due.places, null);
        exception
            when others then
                raise warning 'delayed events could not be delivered together, delivering one by one: %', sqlerrm;
                v_result := pgque_internal.move_delayed_singly(v_due.slots, v_due.ids, v_due.places);
        end;
        v_sent := v_result.sent;
        if v_result.taken < cardinality(v_due.ids) then
            v_left := array(
                select d.de_id from unnest(v_due.slots, v_due.ids) u (slot, id)
                join pgque_internal.delayed d on d.de_slot = u.slot and d.de_id = u.id);
        end if;
    end if;
    -- Without a mark the next pass looks again where this one did.
    if v_due.until is not null and cardinality(v_left) <= 1000 then
        insert into pgque_internal.delay_mark (mark_due, mark_snapshot, mark_seq, mark_left)
        values (v_due.until, v_snapshot, v_seq, v_left);
    end if;
    return v_sent;
end
$$;

-- Sends the delayed events that are due; call it every second or so. Writes nothing when there is nothing to do, and
-- does nothing when another session is at it. What can't be sent is set aside, with a warning, and tried again later.
--   result  number of events sent, at most some 100,000: then there may be more, call again
create or replace function pgque.maint_deliver_delayed() returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgque_internal.require_read_committed('maint_deliver_delayed');
    return pgque_internal.deliver_delayed(false);
end
$$;

-- ---------------------------------------------------------------------------------------------------
-- Steps of maint()
-- ---------------------------------------------------------------------------------------------------

-- Sends the delayed events that are due, and moves the mark on past those that were cancelled before their time, if
-- there may be many.
--   result  number of events sent
create or replace function pgque_internal.maint_delayed() returns bigint
language sql
set search_path = pg_catalog, pg_temp
as $$
    select pgque_internal.deliver_delayed(exists (
        select from pg_inherits i
        where i.inhparent = 'pgque_internal.delayed'::regclass and pg_relation_size(i.inhrelid) >= 1048576))
$$;

-- Empties a slot of delayed events if no row is left in it. Waits a moment for the lock, since passes come and go.
--   i_table  its table
--   result   whether it was emptied; false when a row waits there, or it is in use
create or replace function pgque_internal.empty_delay_slot(i_table regclass) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
as $$
declare
    v_due      timestamptz := (pgque_internal.newest_mark()).mark_due;
    v_snapshot pg_snapshot := pg_current_snapshot();
    v_waiting  boolean;
begin
    -- The usual reason is found without a walk over what was sent.
    execute format('select exists (select from %s d where d.de_deliver_at > $1 order by d.de_deliver_at limit 1)', i_table)
    into v_waiting using coalesce(v_due, '-infinity');
    if not v_waiting then
        execute format('select exists (select from %s d)', i_table) into v_waiting;
    end if;
    if v_waiting then
        return false;
    end if;

    execute format('lock table %s in access exclusive mode', i_table);
    -- Now nobody is inside; of what came since the look, the index tells.
    execute format('select exists (select from %s d where d.de_xid >= $1 and not pg_visible_in_snapshot(d.de_xid, $2)'
                   ' order by d.de_xid limit 1)', i_table)
    into v_waiting using pg_snapshot_xmin(v_snapshot), v_snapshot;
    if v_waiting then
        return false;
    end if;
    execute format('truncate table %s', i_table);
    return true;
exception
    when lock_not_available then
        return false;
end
$$;

-- Empties the slots of delayed events that have grown, or that are seldom written to, and forgets old marks.
--   result  0
create or replace function pgque_internal.empty_delay_slots() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_past  int2[] := pgque_internal.past_delay_slots(clock_timestamp()) || array[15, 16]::int2[];
    v_mark  pgque_internal.delay_mark;
    v_table regclass;
begin
    for v_table in
        select i.inhrelid::regclass
        from pg_inherits i
        join pg_class c on c.oid = i.inhrelid
        cross join lateral pg_relation_size(i.inhrelid) s (bytes)
        where i.inhparent = 'pgque_internal.delayed'::regclass
          and s.bytes > 0
          and (s.bytes >= 1048576 or substr(c.relname, length('delayed_') + 1)::int2 = any (v_past))
    loop
        perform pgque_internal.empty_delay_slot(v_table);
    end loop;

    if pg_relation_size('pgque_internal.delay_mark') >= 1048576 then
        begin
            lock table pgque_internal.delay_mark in access exclusive mode nowait;
            v_mark := pgque_internal.newest_mark();
            -- Whoever reads with an older snapshot finds no mark, and looks at everything once.
            truncate table pgque_internal.delay_mark;
            insert into pgque_internal.delay_mark (mark_due, mark_snapshot, mark_seq, mark_left)
            values (v_mark.mark_due, v_mark.mark_snapshot, v_mark.mark_seq, v_mark.mark_left);
        exception
            when lock_not_available then
                null;
        end;
    end if;
    return 0;
end
$$;

-- ---------------------------------------------------------------------------------------------------
-- Writes to the view pgque.delayed_events, carried over to its storage
-- ---------------------------------------------------------------------------------------------------

-- A changed row is written anew, so that passes see it as one that has just come.
create or replace function pgque_internal.delayed_events_write() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id bigint;
begin
    if tg_op <> 'INSERT' then
        delete from pgque_internal.delayed d where d.de_id = old.de_id;
        if not found then
            return null;
        end if;
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    if tg_op = 'INSERT' then
        -- Drawn in any case: passes do nothing while the sequence was never used.
        v_id := nextval('pgque.delayed_events_de_id_seq');
        new.de_id := coalesce(new.de_id, v_id);
    end if;
    insert into pgque_internal.delayed (de_id, de_slot, de_deliver_at, de_queue_name, de_type, de_data,
                                        de_extra1, de_extra2, de_extra3, de_extra4, de_error, de_failed_at)
    values (new.de_id, pgque_internal.delay_slot(new.de_deliver_at, clock_timestamp()), new.de_deliver_at, new.de_queue_name,
            new.de_type, new.de_data, new.de_extra1, new.de_extra2, new.de_extra3, new.de_extra4, new.de_error,
            new.de_failed_at);
    return new;
end
$$;

create or replace trigger delayed_events_write instead of insert or update or delete on pgque.delayed_events
for each row execute function pgque_internal.delayed_events_write();
