-- Batches: the events between two ticks, as one consumer sees them.
--
-- What this topic guarantees
--   * A batch holds the committed events whose transactions are complete at its end tick and were not at its
--     start tick, in the order of their ids; it reads the same until it is settled.
--   * A consumer has at most one open batch. Opening holds the lock of the consumer's row until the
--     transaction ends, so a second session waits and then gets the same batch.
--   * Only the slots that hold rows of the window are touched, so that readers do not keep the others from
--     being emptied.
--   * receive_batch() covers as many ticks as fit its budget and passes over empty ones; a batch larger than
--     one page is read page by page, without a cursor held open (a large one by a map of its pages, see there).

-- Who has a batch open, and where that stands.
--   i_batch_id  batch
--   i_lock      whether to lock the consumer's row first
--   sub, cur    the consumer and its position; NULL when the batch is not open (any more)
create or replace function pgque_internal.find_open(
    i_batch_id bigint, i_lock boolean, out sub pgque_internal.sub, out cur pgque_internal.cursor)
language plpgsql
as $$
declare
    v_sub    pgque_internal.sub;
    v_cursor pgque_internal.cursor;
begin
    select c.* into v_cursor from pgque_internal.cursor c where c.cur_batch = i_batch_id limit 1;
    if not found then
        return;
    end if;
    if i_lock then
        select s.* into v_sub from pgque_internal.sub s where s.sub_no = v_cursor.cur_sub for no key update;
    else
        select s.* into v_sub from pgque_internal.sub s where s.sub_no = v_cursor.cur_sub;
    end if;
    v_cursor := pgque_internal.newest_cursor(v_sub.sub_no);
    if v_cursor.cur_batch = i_batch_id then
        sub := v_sub;
        cur := v_cursor;
    end if;
end
$$;

-- The batch that a consumer has open, with what is needed to read it, but for the names and what is needed to settle it.
--   i_sub  consumer
--   i_cur  its newest position, with an open batch
create or replace function pgque_internal.batch_window(i_sub pgque_internal.sub, i_cur pgque_internal.cursor)
returns pgque_internal.batch
language plpgsql
as $$
declare
    v_batch pgque_internal.batch;
begin
    v_batch.batch_id := i_cur.cur_batch;
    v_batch.sub_no := i_sub.sub_no;
    v_batch.sub_id := i_sub.sub_id;
    v_batch.queue_id := i_sub.sub_queue;
    v_batch.queue_prefix := 'pgque.event_' || i_sub.sub_queue;
    v_batch.consumer_id := i_sub.sub_consumer;
    v_batch.role := i_sub.sub_role;
    v_batch.part := i_sub.sub_part;
    v_batch.parts := i_sub.sub_parts;
    v_batch.cursor_seq := i_cur.cur_seq;
    v_batch.prev_tick := i_cur.cur_last_tick;
    v_batch.next_tick := i_cur.cur_next_tick;
    v_batch.prefix := i_cur.cur_prefix;
    select f.tick_snapshot, t.tick_snapshot, t.tick_event_slots, t.tick_event_seq - f.tick_event_seq
    into v_batch.prev_snapshot, v_batch.next_snapshot, v_batch.slots, v_batch.expected
    from (select * from pgque.tick t
          where t.tick_queue = i_sub.sub_queue and t.tick_id = i_cur.cur_last_tick limit 1) f,
         (select * from pgque.tick t
          where t.tick_queue = i_sub.sub_queue and t.tick_id = i_cur.cur_next_tick limit 1) t;
    if i_cur.cur_next_tick > i_cur.cur_last_tick + 1 then
        select bit_or(t.tick_event_slots) into v_batch.slots from pgque.tick t
        where t.tick_queue = i_sub.sub_queue and t.tick_id > i_cur.cur_last_tick and t.tick_id <= i_cur.cur_next_tick;
    end if;
    return v_batch;
end
$$;

-- The batch that a consumer has open, with what is needed to read and to settle it; parameters as above.
create or replace function pgque_internal.batch_of(i_sub pgque_internal.sub, i_cur pgque_internal.cursor)
returns pgque_internal.batch
language plpgsql
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.batch_window(i_sub, i_cur);
begin
    if i_sub.sub_role = 'coop_member' then
        select m.sub_consumer into v_batch.consumer_id
        from pgque_internal.sub m where m.sub_id = i_sub.sub_id and m.sub_role = 'coop_main';
    end if;
    select q.queue_name, coalesce(q.queue_max_retries, 5), o.co_name
    into v_batch.queue_name, v_batch.max_retries, v_batch.consumer_name
    from pgque.queue q join pgque.consumer o on o.co_id = v_batch.consumer_id
    where q.queue_id = i_sub.sub_queue;
    return v_batch;
end
$$;

-- An open batch by its id.
--   i_batch_id  batch
--   i_lock      whether to lock the consumer's row first
--   result      the batch; NULL when it is not open (any more)
create or replace function pgque_internal.find_batch(i_batch_id bigint, i_lock boolean) returns pgque_internal.batch
language plpgsql
as $$
declare
    v_open  record;
    v_batch pgque_internal.batch;
begin
    v_open := pgque_internal.find_open(i_batch_id, i_lock);
    if (v_open.cur).cur_batch is null then
        return null;
    end if;
    v_batch := pgque_internal.batch_of(v_open.sub, v_open.cur);
    if v_batch.prev_snapshot is null or v_batch.next_snapshot is null then
        -- Somebody else may have finished it just now, and its ticks are needed no more.
        v_open := pgque_internal.find_open(i_batch_id, i_lock);
        if (v_open.cur).cur_batch is null then
            return null;
        end if;
    end if;
    return pgque_internal.require_ticks(v_batch);
end
$$;

-- Refuses a batch whose ticks are gone.
create or replace function pgque_internal.require_ticks(i_batch pgque_internal.batch) returns pgque_internal.batch
language plpgsql
as $$
begin
    if i_batch.prev_snapshot is null or i_batch.next_snapshot is null then
        raise exception 'PgQ corruption: consumer "%" of queue "%" stands at ticks % to %, which do not exist',
            (select c.co_name from pgque.consumer c where c.co_id = i_batch.consumer_id),
            (select q.queue_name from pgque.queue q where q.queue_id = i_batch.queue_id),
            i_batch.prev_tick, i_batch.next_tick
            using hint = 'Move the consumer to an existing tick with pgque.register_consumer_at.';
    end if;
    return i_batch;
end
$$;

-- Slot of a partitioned consumer that a key belongs to.
--   i_key   key (extra1) of an event; NULL belongs to slot 0
--   i_n     number of slots
--   result  slot from 0 to i_n - 1
create or replace function pgque.slot_of(i_key text, i_n int4) returns int4
language sql immutable parallel safe
as $$
    select coalesce(((pg_catalog.hashtextextended(i_key, 0) % i_n + i_n) % i_n)::int4, 0)
$$;

-- Condition on a row of an event table, named e: whether it is for this batch's consumer, and not done yet.
--   i_batch  batch
--   i_after  only events with a higher id; NULL: all that are not settled
create or replace function pgque_internal.batch_filter(i_batch pgque_internal.batch, i_after bigint) returns text
language plpgsql
as $$
begin
    return format('(e.ev_owner is null or e.ev_owner = %s)', i_batch.sub_id)
           || coalesce(' and e.ev_id > ' || greatest(i_after, i_batch.prefix), '')
           || coalesce(format(' and pgque.slot_of(e.ev_extra1, %s) = ', i_batch.parts) || i_batch.part, '');
end
$$;

-- Query for a batch's events, unordered.
--   i_batch    batch
--   i_after    only events with a higher id; NULL: all that are not settled
--   i_columns  select list; e is the row of the event table
create or replace function pgque_internal.batch_query(i_batch pgque_internal.batch, i_after bigint, i_columns text)
returns text
language plpgsql
as $$
declare
    v_window  record;
    v_leaf    text[] := pgque_internal.leaves(i_batch.queue_prefix);
    v_filter  text := pgque_internal.batch_filter(i_batch, i_after);
    v_branch  text;
    v_queries text[] := '{}';
begin
    select w.lo, w.hi into v_window from pgque_internal.window_ranges(i_batch.prev_snapshot, i_batch.next_snapshot) w;
    if cardinality(v_window.lo) = 1 then
        v_branch := format('select %s from %%s e where e.ev_txid >= %L::xid8 and e.ev_txid < %L::xid8 and %s',
                           i_columns, v_window.lo[1], v_window.hi[1], v_filter);
    else
        -- offset 0 keeps one index scan a range: as a plain join the planner, lacking statistics, would
        -- rather read the whole table.
        v_branch := format('select e.* from unnest(%L::xid8[], %L::xid8[]) r (lo, hi) cross join lateral ('
                           'select %s from %%s e where e.ev_txid >= r.lo and e.ev_txid < r.hi and %s offset 0) e',
                           v_window.lo, v_window.hi, i_columns, v_filter);
    end if;
    for i in 0 .. 2 loop
        if i_batch.slots & (1 << i) <> 0 then
            v_queries := v_queries || format(v_branch, v_leaf[i + 1]);
        end if;
    end loop;
    if cardinality(v_queries) = 0 or cardinality(v_window.lo) = 0 then
        return format('select %s from pgque.event_template e where false', i_columns);
    end if;
    return array_to_string(v_queries, ' union all ');
end
$$;

-- Query for a batch's events, columns as in the event tables, unordered; arguments as above.
create or replace function pgque_internal.batch_query(i_batch pgque_internal.batch, i_after bigint) returns text
language plpgsql
as $$
begin
    return pgque_internal.batch_query(i_batch, i_after,
                                      'e.ev_id, e.ev_time, e.ev_txid, e.ev_owner, e.ev_retry, e.ev_type, e.ev_data,'
                                      ' e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4');
end
$$;

-- Query for all events of a batch in the order of their ids, columns as of a message. Made for many: ids and places
-- are sorted, in memory, instead of whole rows, on disk; small batches are planned faster without.
create or replace function pgque_internal.ordered_query(i_batch pgque_internal.batch) returns text
language plpgsql
as $$
declare
    v_leaf    text[] := pgque_internal.leaves(i_batch.queue_prefix);
    v_single  boolean := i_batch.slots in (1, 2, 4);
    v_queries text[] := '{}';
begin
    for i in 0 .. 2 loop
        if i_batch.slots & (1 << i) <> 0 then
            v_queries := v_queries || format('select e.* from %s e where e.ctid = n.place%s', v_leaf[i + 1],
                                             case when not v_single then ' and n.slot = ' || i else '' end);
        end if;
    end loop;
    if cardinality(v_queries) = 0 then
        v_queries := array['select e.* from pgque.event_template e where n.place is null'];
    end if;
    -- The id is the one that is sorted by, so that the planner knows the order.
    return format('select n.ev_id, %s::bigint, e.ev_type, e.ev_data, e.ev_retry, e.ev_time,'
                  ' e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4'
                  ' from (select * from (%s) e order by e.ev_id offset 0) n'
                  ' cross join lateral (%s offset 0) e order by n.ev_id',
                  i_batch.batch_id,
                  pgque_internal.batch_query(i_batch, null, 'e.ev_id, e.ctid as place'
                                                            || case when not v_single then ', e.ev_slot as slot' else '' end),
                  array_to_string(v_queries, ' union all '));
end
$$;

-- Opens a consumer's next batch, or finds the open one.
--   i_queue_name, i_consumer_name  consumer
--   i_min_lag       only up to a tick that is at least so old
--   i_min_count     only when the batch covers so many events, by the event sequence …
--   i_min_interval  … or so much time; NULL of both: the next tick, whatever it covers
--   result          batch_id NULL: nothing to do
create or replace function pgque.next_batch_custom(
    i_queue_name text, i_consumer_name text, i_min_lag interval, i_min_count integer, i_min_interval interval,
    out batch_id bigint, out cur_tick_id bigint, out prev_tick_id bigint, out cur_tick_time timestamptz,
    out prev_tick_time timestamptz, out cur_tick_event_seq bigint, out prev_tick_event_seq bigint)
returns record
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub    pgque_internal.sub := pgque_internal.lock_sub(i_queue_name, i_consumer_name);
    v_cursor pgque_internal.cursor;
    v_prev   pgque.tick;
    v_next   pgque.tick;
begin
    if v_sub.sub_role = 'coop_main' and not pgque_internal.has_members(v_sub.sub_id) then
        return;
    end if;
    perform pgque_internal.refuse_shared(v_sub, i_queue_name, i_consumer_name);
    v_cursor := pgque_internal.newest_cursor(v_sub.sub_no);
    v_prev := pgque_internal.tick_at(v_sub, v_cursor.cur_last_tick);
    if v_cursor.cur_next_tick is not null then
        v_next := pgque_internal.tick_at(v_sub, v_cursor.cur_next_tick);
    else
        v_next := pgque_internal.end_tick(v_prev, i_min_lag, i_min_count, i_min_interval);
        if v_next.tick_id is null then
            return;
        end if;
    end if;

    batch_id := v_cursor.cur_batch;
    if batch_id is null then
        batch_id := pgque_internal.next_batch_id();
        perform pgque_internal.append_cursor(v_sub.sub_no, v_cursor.cur_seq, v_prev.tick_id, v_next.tick_id, batch_id,
                                             v_cursor.cur_prefix);
    end if;
    cur_tick_id := v_next.tick_id;
    prev_tick_id := v_prev.tick_id;
    cur_tick_time := v_next.tick_time;
    prev_tick_time := v_prev.tick_time;
    cur_tick_event_seq := v_next.tick_event_seq;
    prev_tick_event_seq := v_prev.tick_event_seq;
end
$$;

-- Whether a group has members.
create or replace function pgque_internal.has_members(i_sub_id int4) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from pgque_internal.sub s where s.sub_id = i_sub_id and s.sub_role = 'coop_member');
end
$$;

-- Refuses to move a consumer that others share or hold by their own functions; the caller has locked its row.
create or replace function pgque_internal.refuse_shared(i_sub pgque_internal.sub, i_queue text, i_consumer text) returns void
language plpgsql
as $$
begin
    if i_sub.sub_role = 'coop_main' then
        raise exception '% on % is a cooperative main consumer', i_consumer, i_queue
            using hint = 'Receive as one of its members: pgque.receive_coop(queue, consumer, subconsumer).';
    end if;
    if i_sub.sub_role = 'coop_member' then
        raise exception '% on % is a cooperative subconsumer', i_consumer, i_queue
            using hint = 'Receive with pgque.receive_coop(queue, consumer, subconsumer).';
    end if;
    if pgque_internal.lease_is_alive(i_sub) then
        raise exception 'consumer % on % is leased by %', i_consumer, i_queue, i_sub.sub_instance
            using errcode = 'lock_not_available',
                  hint = 'Receive with pgque.receive_leased, or wait until the lease is released or expires.';
    end if;
    if i_sub.sub_instance is not null then
        -- The instance is dead, as far as anybody can tell: if it wakes, its batch id is void.
        perform pgque_internal.hand_over(i_sub.sub_no, null::text, null::interval);
    end if;
end
$$;

-- A tick that a consumer stands at.
create or replace function pgque_internal.tick_at(i_sub pgque_internal.sub, i_tick_id bigint) returns pgque.tick
language plpgsql stable
as $$
declare
    v_tick pgque.tick;
begin
    select t.* into v_tick from pgque.tick t where t.tick_queue = i_sub.sub_queue and t.tick_id = i_tick_id limit 1;
    if not found then
        raise exception 'PgQ corruption: consumer % of queue % stands at tick %, which does not exist',
            i_sub.sub_consumer, i_sub.sub_queue, i_tick_id
            using hint = 'Move the consumer to an existing tick with pgque.register_consumer_at.';
    end if;
    return v_tick;
end
$$;

-- Chooses the tick at which a batch ends; arguments as of next_batch_custom.
create or replace function pgque_internal.end_tick(
    i_prev pgque.tick, i_min_lag interval, i_min_count integer, i_min_interval interval)
returns pgque.tick
language plpgsql stable
as $$
declare
    v_tick pgque.tick;
begin
    if i_min_count is null and i_min_interval is null then
        select t.* into v_tick from pgque.tick t
        where t.tick_queue = i_prev.tick_queue and t.tick_id > i_prev.tick_id
        order by t.tick_id limit 1;
    else
        select t.* into v_tick from pgque.tick t
        cross join lateral pgque.find_tick_helper(i_prev.tick_queue, i_prev.tick_id, i_prev.tick_time, i_prev.tick_event_seq,
                                                  i_min_count::int8, i_min_interval) h
        where t.tick_queue = i_prev.tick_queue and t.tick_id = h.next_tick_id
        limit 1;
    end if;
    if now() - v_tick.tick_time < i_min_lag then
        return null;
    end if;
    return v_tick;
end
$$;

-- Tick that ends a batch of a wanted size: the newest, if it covers the events or the time; the first that
-- does, if the newest covers more than twice as much.
--   i_queue_id      queue
--   i_prev_tick_*   tick at which the batch starts
--   i_min_count     events by the sequence, or NULL
--   i_min_interval  time, or NULL
--   result          all NULL: no such tick yet
create or replace function pgque.find_tick_helper(
    i_queue_id int4, i_prev_tick_id int8, i_prev_tick_time timestamptz, i_prev_tick_seq int8, i_min_count int8,
    i_min_interval interval, out next_tick_id int8, out next_tick_time timestamptz, out next_tick_seq int8)
returns record
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_newest pgque.tick;
begin
    v_newest := pgque_internal.newest_tick(i_queue_id);
    if v_newest.tick_id is null or v_newest.tick_id <= i_prev_tick_id then
        return;
    end if;
    if coalesce(v_newest.tick_event_seq - i_prev_tick_seq < i_min_count, true)
       and coalesce(v_newest.tick_time - i_prev_tick_time < i_min_interval, true)
    then
        return;
    end if;
    if v_newest.tick_event_seq - i_prev_tick_seq > i_min_count * 2
       or v_newest.tick_time - i_prev_tick_time > i_min_interval * 2
    then
        select t.* into v_newest from pgque.tick t
        where t.tick_queue = i_queue_id and t.tick_id > i_prev_tick_id
          and (t.tick_event_seq - i_prev_tick_seq >= i_min_count or t.tick_time - i_prev_tick_time >= i_min_interval)
        order by t.tick_id limit 1;
    end if;
    next_tick_id := v_newest.tick_id;
    next_tick_time := v_newest.tick_time;
    next_tick_seq := v_newest.tick_event_seq;
end
$$;

-- Opens a consumer's next batch, of one tick, or finds the open one.
--   i_queue_name, i_consumer_name  consumer
--   result                         the batch and its two ticks; batch_id NULL: nothing to do
create or replace function pgque.next_batch_info(
    i_queue_name text, i_consumer_name text,
    out batch_id bigint, out cur_tick_id bigint, out prev_tick_id bigint, out cur_tick_time timestamptz,
    out prev_tick_time timestamptz, out cur_tick_event_seq bigint, out prev_tick_event_seq bigint)
returns record
language sql
set search_path = pg_catalog, pg_temp
as $$
    select * from pgque.next_batch_custom(i_queue_name, i_consumer_name, null::interval, null::integer, null::interval)
$$;

-- Opens a consumer's next batch, of one tick, or finds the open one.
--   i_queue_name, i_consumer_name  consumer
--   result                         batch id; NULL: nothing to do
create or replace function pgque.next_batch(i_queue_name text, i_consumer_name text) returns bigint
language sql
set search_path = pg_catalog, pg_temp
as $$
    select b.batch_id
    from pgque.next_batch_custom(i_queue_name, i_consumer_name, null::interval, null::integer, null::interval) b
$$;

-- Query that reads a batch, for use in SQL of one's own.
--   x_batch_id  batch
--   result      query text; error 'batch not found: …'
create or replace function pgque.batch_event_sql(x_batch_id bigint) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.find_batch(x_batch_id, false);
begin
    if v_batch.batch_id is null then
        raise exception 'batch not found: %', coalesce(x_batch_id::text, 'NULL');
    end if;
    return format('select ev_id, ev_time, ev_txid::text::bigint as ev_txid, ev_retry, ev_type, ev_data,'
                  ' ev_extra1, ev_extra2, ev_extra3, ev_extra4 from (%s) e order by ev_id',
                  pgque_internal.batch_query(v_batch, null));
end
$$;

-- Tables that hold a batch's events.
--   x_batch_id  batch
--   result      names; error 'Cannot find data for batch …'
create or replace function pgque.batch_event_tables(x_batch_id bigint) returns setof text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.find_batch(x_batch_id, false);
begin
    if v_batch.batch_id is null then
        raise exception 'Cannot find data for batch %', coalesce(x_batch_id::text, 'NULL');
    end if;
    return query
        select l.leaf
        from unnest(pgque_internal.leaves(v_batch.queue_prefix)) with ordinality l (leaf, n)
        where v_batch.slots & (1 << (l.n::int4 - 1)) <> 0;
end
$$;

-- Events of an open batch in the order of their ids.
--   x_batch_id  batch
--   result      events; error 'batch not found: …'
create or replace function pgque.get_batch_events(
    x_batch_id bigint, out ev_id bigint, out ev_time timestamptz, out ev_txid bigint, out ev_retry int4, out ev_type text,
    out ev_data text, out ev_extra1 text, out ev_extra2 text, out ev_extra3 text, out ev_extra4 text)
returns setof record
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query execute pgque.batch_event_sql(x_batch_id);
end
$$;

-- Opens a cursor over a batch and returns its first events, as the caller: the filter is SQL of the caller's.
--   i_batch_id      batch
--   i_cursor_name   name; the cursor ends with the transaction
--   i_quick_limit   events to return at once; 0 or less only opens
--   i_extra_where   condition on the batch's columns, or NULL
--   result          events; a NULL among the first three arguments gives none, and no cursor
create or replace function pgque.get_batch_cursor(
    i_batch_id bigint, i_cursor_name text, i_quick_limit integer, i_extra_where text,
    out ev_id bigint, out ev_time timestamptz, out ev_txid bigint, out ev_retry int4, out ev_type text, out ev_data text,
    out ev_extra1 text, out ev_extra2 text, out ev_extra3 text, out ev_extra4 text)
returns setof record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_cursor refcursor := i_cursor_name;
    v_event  record;
begin
    if i_batch_id is null or i_cursor_name is null or i_quick_limit is null then
        return;
    end if;
    open v_cursor no scroll for execute
        format('select * from (%s) e%s order by ev_id', pgque.batch_event_sql(i_batch_id),
               coalesce(' where ' || i_extra_where, ''));
    for i in 1 .. i_quick_limit loop
        fetch v_cursor into v_event;
        exit when not found;
        ev_id := v_event.ev_id;
        ev_time := v_event.ev_time;
        ev_txid := v_event.ev_txid;
        ev_retry := v_event.ev_retry;
        ev_type := v_event.ev_type;
        ev_data := v_event.ev_data;
        ev_extra1 := v_event.ev_extra1;
        ev_extra2 := v_event.ev_extra2;
        ev_extra3 := v_event.ev_extra3;
        ev_extra4 := v_event.ev_extra4;
        return next;
    end loop;
end
$$;

-- Same, without a condition.
create or replace function pgque.get_batch_cursor(
    i_batch_id bigint, i_cursor_name text, i_quick_limit integer,
    out ev_id bigint, out ev_time timestamptz, out ev_txid bigint, out ev_retry int4, out ev_type text, out ev_data text,
    out ev_extra1 text, out ev_extra2 text, out ev_extra3 text, out ev_extra4 text)
returns setof record
language sql strict
set search_path = pg_catalog, pg_temp
as $$
    select * from pgque.get_batch_cursor(i_batch_id, i_cursor_name, i_quick_limit, null::text)
$$;

-- Receives from the next tick. The ack finishes the whole batch, however few rows were asked for: give a limit
-- only where that is meant, or use receive_batch.
--   i_queue, i_consumer  consumer
--   i_max_return         most events to return, at least 1; NULL: all
--   result               events in the order of their ids, the same until the batch is acked; a tick without
--                        events for this consumer is finished at once
create or replace function pgque.receive(i_queue text, i_consumer text, i_max_return integer default 100)
returns setof pgque.message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id    bigint;
    v_batch pgque_internal.batch;
begin
    if i_max_return < 1 then
        raise exception 'max_return must be >= 1, not %', i_max_return;
    end if;
    if position('#' in i_consumer) > 0 then
        raise exception 'consumer % is a slot of a partitioned consumer: receive it with receive_partitioned', i_consumer;
    end if;
    v_id := pgque.next_batch(i_queue, i_consumer);
    if v_id is null then
        return;
    end if;
    v_batch := pgque_internal.find_batch(v_id, false);
    if i_max_return <= 10000 then
        return query execute
            format('select ev_id, %s::bigint, ev_type, ev_data, ev_retry, ev_time, ev_extra1, ev_extra2, ev_extra3, ev_extra4'
                   ' from (%s) e order by ev_id limit $1',
                   v_id, pgque_internal.batch_query(v_batch, null))
            using i_max_return;
    else
        return query execute pgque_internal.ordered_query(v_batch) || coalesce(' limit ' || i_max_return, '');
    end if;
    if not found then
        perform pgque.finish_batch(v_id);
    end if;
end
$$;

-- Chooses the end of a batch that may cover many ticks: the last one that keeps the batch within the wanted
-- number of events by the sequence, but at least the first tick that has events.
--   i_sub       consumer
--   i_tick_id   tick to start after
--   i_max_rows  wanted most events; also the most ticks looked at
--   tick_id     end; NULL when there is no newer tick
--   no_events   whether no tick up to the newest has events
-- Stable, so that all looks are at the same ticks.
create or replace function pgque_internal.merged_end_tick(
    i_sub pgque_internal.sub, i_tick_id bigint, i_max_rows integer, out tick_id bigint, out no_events boolean)
language plpgsql stable
as $$
declare
    v_newest pgque.tick := pgque_internal.newest_tick(i_sub.sub_queue);
    v_prev   pgque.tick;
    v_first  bigint;
    v_beyond bigint;
begin
    if v_newest.tick_id = i_tick_id + 1 and v_newest.tick_event_slots <> 0 then
        tick_id := v_newest.tick_id;
        no_events := false;
        return;
    end if;
    v_prev := pgque_internal.tick_at(i_sub, i_tick_id);
    if v_newest.tick_id <= i_tick_id then
        no_events := true;
        return;
    end if;
    select t.tick_id into v_first from pgque.tick t
    where t.tick_queue = v_prev.tick_queue and t.tick_id > v_prev.tick_id and t.tick_event_slots <> 0
    order by t.tick_id limit 1;
    no_events := not found;
    if no_events or v_newest.tick_id = v_first
       or (v_newest.tick_event_seq <= v_prev.tick_event_seq + i_max_rows and v_newest.tick_id < v_first + i_max_rows) then
        tick_id := v_newest.tick_id;
        return;
    end if;
    -- With a backlog the end is near, and the ticks beyond it are not read.
    select t.tick_id into v_beyond
    from (
        select t.tick_id, t.tick_event_seq from pgque.tick t
        where t.tick_queue = v_prev.tick_queue and t.tick_id > v_first
        order by t.tick_id limit i_max_rows
    ) t
    where t.tick_event_seq > v_prev.tick_event_seq + i_max_rows
    order by t.tick_id limit 1;
    if v_beyond is not null then
        select t.tick_id into tick_id from pgque.tick t
        where t.tick_queue = v_prev.tick_queue and t.tick_id >= v_first and t.tick_id < v_beyond
        order by t.tick_id desc limit 1;
    else
        select max(t.tick_id) into tick_id
        from (
            select t.tick_id from pgque.tick t
            where t.tick_queue = v_prev.tick_queue and t.tick_id >= v_first
            order by t.tick_id limit i_max_rows
        ) t;
    end if;
end
$$;

-- Whether there may be something to receive: an open batch or a newer tick, or a reason to refuse that the caller
-- finds.
--   i_sub   consumer; NULL for an unknown one
--   result  NULL for an unknown consumer
create or replace function pgque_internal.has_work(i_sub pgque_internal.sub) returns boolean
language plpgsql stable
as $$
declare
    v_cursor pgque_internal.cursor := pgque_internal.newest_cursor(i_sub.sub_no);
begin
    -- By the newest tick: asked whether a newer one exists, the planner expects many and reads them all.
    return i_sub.sub_role <> 'normal'
        or v_cursor.cur_batch is not null
        or (pgque_internal.newest_tick(i_sub.sub_queue)).tick_id > v_cursor.cur_last_tick;
end
$$;

-- Opens a consumer's next batch, or finds the open one, and returns its first page. The batch covers as many
-- ticks as keep it within i_max_rows events by the sequence; ticks without events are passed over.
--   i_queue, i_consumer  consumer
--   i_max_rows           most rows of a page, and the wanted size of the batch
--   i_max_bytes          a page ends with the row whose data reaches so many bytes
--   more                 whether the batch has a row behind this one: of the last row, whether there is
--                        another page, to be read by receive_page
--   result               rows in the order of their ids; none: nothing to do
create or replace function pgque.receive_batch(i_queue text, i_consumer text, i_max_rows integer, i_max_bytes bigint)
returns table (msg_id bigint, batch_id bigint, type text, payload text, retry_count int4, created_at timestamptz,
               extra1 text, extra2 text, extra3 text, extra4 text, more boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub  pgque_internal.sub;
    v_page pgque_internal.page;
begin
    perform pgque_internal.check_page(i_max_rows, i_max_bytes);
    -- An idle consumer locks nothing, and so writes nothing.
    if not pgque_internal.has_work(pgque_internal.find_sub(i_queue, i_consumer)) then
        return;
    end if;
    v_sub := pgque_internal.lock_sub(i_queue, i_consumer);
    if v_sub.sub_part is not null then
        raise exception 'consumer % is a slot of a partitioned consumer: receive it with receive_partitioned', i_consumer;
    end if;
    perform pgque_internal.refuse_shared(v_sub, i_queue, i_consumer);
    v_page := pgque_internal.open_merged(v_sub, i_max_rows, i_max_bytes, null);
    if v_page.events is not null then
        return query select * from pgque_internal.page_rows(v_page);
    elsif v_page.query is not null then
        return query execute v_page.query using i_max_rows, i_max_bytes;
    end if;
end
$$;

-- Opens the next batch of a consumer whose row is locked; see receive_batch.
--   i_sub        consumer
--   i_last_tick  tick not to go beyond; NULL: none
--   result       its first page, as of first_page; NULL: nothing to do
create or replace function pgque_internal.open_merged(
    i_sub pgque_internal.sub, i_max_rows integer, i_max_bytes bigint, i_last_tick bigint)
returns pgque_internal.page
language plpgsql
as $$
begin
    return pgque_internal.open_next(i_sub, pgque_internal.newest_cursor(i_sub.sub_no), false, i_max_rows, i_max_bytes,
                                    i_last_tick, null);
end
$$;

-- Opens the next batch of a consumer whose row is locked.
--   i_cur     its newest position
--   i_settle  whether the batch that is open there is done: its end and the next one's beginning are one position
--   i_ticked  tick that this statement has taken because of events; NULL: none
--   otherwise as of open_merged
create or replace function pgque_internal.open_next(
    i_sub pgque_internal.sub, i_cur pgque_internal.cursor, i_settle boolean, i_max_rows integer, i_max_bytes bigint,
    i_last_tick bigint, i_ticked bigint)
returns pgque_internal.page
language plpgsql
as $$
declare
    v_cursor pgque_internal.cursor := i_cur;
    v_done   boolean := i_settle;
    v_end    record;
    v_tick   bigint;
    v_page   pgque_internal.page;
begin
    loop
        if v_done then
            v_cursor.cur_last_tick := v_cursor.cur_next_tick;
            v_cursor.cur_next_tick := null;
            v_cursor.cur_batch := null;
            v_cursor.cur_prefix := null;
        end if;
        if v_cursor.cur_batch is null then
            if i_ticked = v_cursor.cur_last_tick + 1 then
                v_cursor.cur_next_tick := i_ticked;
            end if;
            if v_cursor.cur_next_tick is null then
                v_end := pgque_internal.merged_end_tick(i_sub, v_cursor.cur_last_tick, i_max_rows);
                v_tick := least(v_end.tick_id, i_last_tick);
                if v_end.tick_id is null or v_tick <= v_cursor.cur_last_tick then
                    v_tick := v_cursor.cur_last_tick;
                    v_end.no_events := true;
                end if;
                if v_end.no_events then
                    if v_done or v_tick > v_cursor.cur_last_tick then
                        perform pgque_internal.append_cursor(i_sub.sub_no, v_cursor.cur_seq, v_tick, null, null, null);
                    end if;
                    return null;
                end if;
                v_cursor.cur_next_tick := v_tick;
            end if;
            v_cursor.cur_batch := pgque_internal.next_batch_id();
            perform pgque_internal.append_cursor(i_sub.sub_no, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick,
                                                 v_cursor.cur_batch, v_cursor.cur_prefix);
            v_cursor.cur_seq := v_cursor.cur_seq + 1;
        end if;
        v_page := pgque_internal.first_page(
            pgque_internal.require_ticks(pgque_internal.batch_window(i_sub, v_cursor)), i_max_rows, i_max_bytes);
        if v_page.batch_id is not null then
            return v_page;
        end if;
        -- Redeliveries to others, keys of other slots, or ticks made by hand: nothing of it is for this one.
        v_done := true;
    end loop;
end
$$;
