-- Ticks: numbered markers that cut a queue's log into batches.
--
-- What this topic guarantees
--   * Ticking a queue is exclusive by its row lock, taken before the tick's snapshot; so snapshots grow with
--     tick ids, and the events between two ticks are the same for every reader at every time.
--   * What a tick covers comes from a look into all slots of the queue. The filter that skips quiet queues
--     may delay an event, never lose it.
--   * tick_now() takes a tick when, and only when, events are visible that the newest tick did not see:
--     a commit that came late, behind a newer one, is covered by the next call.
--   * The tick, not the send, notifies: channel 'pgque_<queue>', payload the tick id. Only where nobody is to be woken
--     it doesn't: see tick_and_receive_leased.

-- Refuses to run on a snapshot that does not move on with every statement.
create or replace function pgque_internal.require_read_committed(i_what text) returns void
language plpgsql
as $$
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception '% needs a READ COMMITTED transaction, not %', i_what, upper(current_setting('transaction_isolation'))
            using errcode = 'invalid_transaction_state';
    end if;
end
$$;

-- Transactions that are complete in one snapshot and were not in an earlier one, as ranges of ids [lo, hi)
-- which leave out those still running: an index probe over them never walks the rows of an open transaction.
--   i_from, i_to  earlier and later snapshot
create or replace function pgque_internal.window_ranges(i_from pg_snapshot, i_to pg_snapshot, out lo xid8[], out hi xid8[])
language plpgsql immutable
as $$
declare
    v_lo    bigint[] := '{}';
    v_hi    bigint[] := '{}';
    v_start bigint := pg_snapshot_xmax(i_from)::text::bigint;
    v_end   bigint := pg_snapshot_xmax(i_to)::text::bigint;
    v_xid   xid8;
    v_id    bigint;
begin
    if pg_snapshot_xmin(i_from) = pg_snapshot_xmax(i_from) and pg_snapshot_xmin(i_to) = pg_snapshot_xmax(i_to)
       and v_start < v_end then
        -- Nothing was running at either.
        lo := array[pg_snapshot_xmax(i_from)];
        hi := array[pg_snapshot_xmax(i_to)];
        return;
    end if;
    -- Ran at the earlier snapshot and ended since.
    for v_xid in select x from pg_snapshot_xip(i_from) x where pg_visible_in_snapshot(x, i_to) loop
        v_id := v_xid::text::bigint;
        if v_hi[cardinality(v_hi)] = v_id then
            v_hi[cardinality(v_hi)] := v_id + 1;
        else
            v_lo := v_lo || v_id;
            v_hi := v_hi || (v_id + 1);
        end if;
    end loop;
    -- Began after the earlier snapshot.
    for v_xid in select x from pg_snapshot_xip(i_to) x where x >= pg_snapshot_xmax(i_from) order by x loop
        v_id := v_xid::text::bigint;
        if v_start < v_id then
            v_lo := v_lo || v_start;
            v_hi := v_hi || v_id;
        end if;
        v_start := v_id + 1;
    end loop;
    if v_start < v_end then
        v_lo := v_lo || v_start;
        v_hi := v_hi || v_end;
    end if;
    lo := v_lo::text[]::xid8[];
    hi := v_hi::text[]::xid8[];
end
$$;

-- Which slots of a queue hold committed rows between two snapshots.
--   i_prefix      prefix of the queue's event tables
--   i_from, i_to  earlier and later snapshot
--   result        bit n set for slot n
create or replace function pgque_internal.probe(i_prefix text, i_from pg_snapshot, i_to pg_snapshot) returns int4
language plpgsql
as $$
declare
    v_window record;
    v_reader text := 'pgque_internal' || substr(i_prefix, 6) || '_slots';
    v_slots  int4;
begin
    if to_regproc(v_reader) is null then
        -- The queue was made by the engine's last release, while another session upgraded it.
        perform pgque_internal.write_readers(substr(i_prefix, 13)::int4);
    end if;
    v_window := pgque_internal.window_ranges(i_from, i_to);
    if cardinality(v_window.lo) = 0 then
        return 0;
    end if;
    execute 'select ' || v_reader || '($1, $2)' into v_slots using v_window.lo, v_window.hi;
    return v_slots;
end
$$;

-- Newest tick of a queue.
create or replace function pgque_internal.newest_tick(i_queue_id int4) returns pgque.tick
language plpgsql stable
as $$
declare
    v_row pgque.tick;
begin
    select t.* into v_row from pgque.tick t where t.tick_queue = i_queue_id order by t.tick_id desc limit 1;
    return v_row;
end
$$;

-- Wakes whoever listens to a queue.
create or replace function pgque_internal.notify_tick(i_queue text, i_tick_id bigint) returns void
language plpgsql
as $$
begin
    perform pg_notify('pgque_' || i_queue, i_tick_id::text);
end
$$;

-- Takes a tick of a queue.
--   i_queue   row of the queue, which the caller has locked
--   i_seq     event sequence, read before this transaction had an id if i_fresh, and before the lock anyway
--   i_fresh   whether that was so
--   i_always  whether to tick without events too
--   i_notify  whether to wake who listens; otherwise the caller sees to that
--   result    tick id; NULL when nothing is visible that the newest tick did not see
create or replace function pgque_internal.take_tick(
    i_queue pgque.queue, i_seq bigint, i_fresh boolean, i_always boolean, i_notify boolean)
returns bigint
language plpgsql
as $$
declare
    v_last     pgque.tick := pgque_internal.newest_tick(i_queue.queue_id);
    v_snapshot pg_snapshot := pgque_internal.tick_snapshot();
    v_slots    int4 := 0;
    v_id       bigint;
begin
    if v_last.tick_id is not null then
        if pg_snapshot_xmax(v_snapshot) < pg_snapshot_xmax(v_last.tick_snapshot)
           or pg_snapshot_xmin(v_snapshot) < pg_snapshot_xmin(v_last.tick_snapshot) then
            raise exception 'Invalid PgQ state: queue "%": tick % has snapshot %, which lies beyond the present %',
                i_queue.queue_name, v_last.tick_id, v_last.tick_snapshot, v_snapshot
                using hint = 'The database was restored into a cluster with lower transaction ids.';
        end if;
        v_slots := pgque_internal.probe(i_queue.queue_data_pfx, v_last.tick_snapshot, v_snapshot);
        if v_slots = 0 and not i_always then
            return null;
        end if;
    end if;

    v_id := nextval(i_queue.queue_tick_seq::regclass);
    insert into pgque.tick (tick_queue, tick_id, tick_snapshot, tick_event_seq, tick_event_slots, tick_xid)
    values (i_queue.queue_id, v_id, v_snapshot, i_seq, v_slots, case when i_fresh then pg_current_xact_id() end);
    if i_notify then
        perform pgque_internal.notify_tick(i_queue.queue_name, v_id);
    end if;
    return v_id;
end
$$;

-- What a ticker needs to know of the queues that it serves, read in one statement.
--   i_queue  queue; NULL for all; served says whether it is neither paused nor ticked from outside
--   i_prev   whether the time of the tick before the newest is wanted
-- The column settled says that nothing can be visible which the newest tick did not see: the sequence has not
-- moved, so every event is of a transaction older than tick_xid; and those had all ended at the tick itself or
-- at an earlier complete pass of this session, which found nothing.
create or replace function pgque_internal.ticker_state(i_queue text, i_prev boolean)
returns setof pgque_internal.queue_state
language sql
set search_path = pg_catalog, pg_temp
as $$
    select q.queue_id, q.queue_name, q.queue_data_pfx, s.value, t.tick_id, t.tick_snapshot, t.tick_event_seq,
           t.tick_time, p.tick_time, not q.queue_ticker_paused and not q.queue_external_ticker,
           coalesce(s.value = t.tick_event_seq
               and (pg_snapshot_xmin(t.tick_snapshot) >= t.tick_xid or clean.xmin >= t.tick_xid), false)
    from pgque.queue q
    cross join (select nullif(current_setting('pgque.clean_xmin', true), '')::xid8 as xmin) clean
    cross join lateral (select coalesce(pg_sequence_last_value(q.queue_sequence), 0) as value) s
    left join lateral (
        select * from pgque.tick t where t.tick_queue = q.queue_id order by t.tick_id desc limit 1
    ) t on true
    left join lateral (
        select p.tick_time from pgque.tick p
        where i_prev and p.tick_queue = q.queue_id and p.tick_id < t.tick_id
        order by p.tick_id desc limit 1
    ) p on true
    where i_queue is null or q.queue_name = i_queue
    order by q.queue_name
$$;

-- Ticks one queue for tick_now: exclusive, isolated from the other queues. Parameters as of take_tick.
--   result  'ticked', 'busy' (another session ticks or configures it), 'failed', or NULL: nothing new
create or replace function pgque_internal.tick_if_new(
    i_queue_id int4, i_seq bigint, i_fresh boolean, i_notify boolean, out tick_id bigint, out outcome text, out detail text)
language plpgsql
as $$
declare
    v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue q where q.queue_id = i_queue_id for no key update skip locked;
    if not found then
        outcome := 'busy';
        return;
    end if;
    tick_id := pgque_internal.take_tick(v_queue, i_seq, i_fresh, false, i_notify);
    if tick_id is not null then
        outcome := 'ticked';
    end if;
exception
    when others then
        outcome := 'failed';
        detail := sqlerrm;
end
$$;

-- Ticks the named queues at once: a tick for each that has events which its newest tick did not see,
-- whatever its thresholds say.
--   i_queues    queues
--   queue_name  queue that was ticked, was busy or failed; a queue with nothing new, paused, or ticked from
--               outside gives no row
--   tick_id     id of the tick
--   outcome     'ticked', 'busy' (call again: another session works on it, and its snapshot may be older than
--               your commit) or 'failed'
--   detail      why it failed; of a queue that was ticked, 'no consumer' when none is subscribed
create or replace function pgque.tick_now(i_queues text[])
returns table (queue_name text, tick_id bigint, outcome text, detail text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_fresh  boolean := pg_current_xact_id_if_assigned() is null;
    v_count  int4 := 0;
    v_ids    int4[] := '{}';
    v_names  text[] := '{}';
    v_seqs   bigint[] := '{}';
    v_queue  record;
    v_result record;
begin
    perform pgque_internal.require_read_committed('tick_now');
    -- All sequences are read before the first queue gives this transaction an id.
    for v_queue in
        select q.queue_id, q.queue_name, coalesce(pg_sequence_last_value(q.queue_sequence), 0) as seq,
               not q.queue_ticker_paused and not q.queue_external_ticker as served
        from pgque.queue q
        where q.queue_name = any (i_queues)
    loop
        v_count := v_count + 1;
        if v_queue.served then
            v_ids := v_ids || v_queue.queue_id;
            v_names := v_names || v_queue.queue_name;
            v_seqs := v_seqs || v_queue.seq;
        end if;
    end loop;

    for i in 1 .. cardinality(v_ids) loop
        v_result := pgque_internal.tick_if_new(v_ids[i], v_seqs[i], v_fresh, true);
        if v_result.outcome is not null then
            queue_name := v_names[i];
            tick_id := v_result.tick_id;
            outcome := v_result.outcome;
            detail := v_result.detail;
            if outcome = 'ticked' and not exists (select from pgque_internal.sub s where s.sub_queue = v_ids[i]) then
                detail := 'no consumer';
            end if;
            return next;
        end if;
    end loop;
    if v_count = cardinality(i_queues) then
        return;
    end if;
    for queue_name in
        select distinct n from unnest(i_queues) n where not exists (select from pgque.queue q where q.queue_name = n)
    loop
        tick_id := null;
        outcome := 'failed';
        detail := format('queue not found: %s', queue_name);
        return next;
    end loop;
end
$$;

-- Ticks every queue that has events which its newest tick did not see, whatever its thresholds say; paused
-- queues and those ticked from outside aside. Cheap where nothing happened, and writes nothing then.
--   result  as tick_now(text[])
create or replace function pgque.tick_now()
returns table (queue_name text, tick_id bigint, outcome text, detail text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_fresh    boolean := pg_current_xact_id_if_assigned() is null;
    v_states   pgque_internal.queue_state[];
    v_state    pgque_internal.queue_state;
    v_snapshot pg_snapshot;
    v_xmin     xid8;
    v_result   record;
    v_clean    boolean := true;
begin
    perform pgque_internal.require_read_committed('tick_now');
    -- All sequences are read before the first queue gives this transaction an id.
    select array_agg(s) into v_states from pgque_internal.ticker_state(null, false) s where not s.settled;
    v_xmin := pg_snapshot_xmin(pg_current_snapshot());

    foreach v_state in array coalesce(v_states, '{}') loop
        if not v_state.served then
            -- What is not looked at is not known to be settled; once served again, it would be passed over.
            v_clean := false;
            continue;
        end if;
        -- Look before locking: a look writes nothing.
        v_snapshot := pg_current_snapshot();
        if pg_snapshot_xmax(v_snapshot) >= pg_snapshot_xmax(v_state.last_snapshot)
           and pgque_internal.probe(v_state.queue_prefix, v_state.last_snapshot, v_snapshot) = 0 then
            continue;
        end if;
        v_result := pgque_internal.tick_if_new(v_state.queue_id, v_state.seq, v_fresh, true);
        if v_result.outcome is not null then
            queue_name := v_state.queue_name;
            tick_id := v_result.tick_id;
            outcome := v_result.outcome;
            detail := v_result.detail;
            if outcome = 'ticked' and not exists (select from pgque_internal.sub s where s.sub_queue = v_state.queue_id) then
                detail := 'no consumer';
            end if;
            v_clean := v_clean and outcome = 'ticked';
            return next;
        end if;
    end loop;
    if v_clean then
        -- A fact about the whole database, so it may serve whoever gets this session next.
        perform set_config('pgque.clean_xmin', v_xmin::text, false);
    end if;
end
$$;

-- Ticks a queue if it is due by its thresholds.
--   i_state  queue, with the time of its second newest tick
--   i_fresh  whether the state was read before this transaction had an id
--   result   tick id; NULL when not due, or when another session is ticking it
create or replace function pgque_internal.tick_if_due(i_state pgque_internal.queue_state, i_fresh boolean) returns bigint
language plpgsql
as $$
declare
    v_queue pgque.queue;
    v_lag   interval := now() - i_state.last_time;
    v_new   bigint := i_state.seq - i_state.last_seq;
    v_due   boolean;
begin
    select * into v_queue from pgque.queue q where q.queue_id = i_state.queue_id;
    if i_state.last_id is null or i_state.prev_time is null then
        v_due := true;
    elsif v_new > 0 then
        v_due := v_new >= v_queue.queue_ticker_max_count or v_lag >= v_queue.queue_ticker_max_lag;
    else
        -- Without new ids: keep-alive ticks at growing distances, or a commit that came late.
        v_due := v_lag >= v_queue.queue_ticker_max_lag / 2
            and (v_lag >= 2 * (i_state.last_time - i_state.prev_time) or v_lag >= v_queue.queue_ticker_idle_period);
        if not v_due and not i_state.settled and v_lag >= v_queue.queue_ticker_max_lag then
            v_due := pgque_internal.probe(v_queue.queue_data_pfx, i_state.last_snapshot, pg_current_snapshot()) <> 0;
        end if;
    end if;
    if not v_due then
        return null;
    end if;

    select * into v_queue from pgque.queue q where q.queue_id = i_state.queue_id for no key update skip locked;
    if not found then
        return null;
    end if;
    -- Another session may have ticked between the look and the lock; its tick is as good as ours.
    if (pgque_internal.newest_tick(i_state.queue_id)).tick_id is distinct from i_state.last_id then
        return null;
    end if;
    return pgque_internal.take_tick(v_queue, i_state.seq, i_fresh, true, true);
end
$$;

-- Ticks a queue when its thresholds say so: ticker_max_count events, or ticker_max_lag since the newest tick
-- with any event; without events at growing distances up to ticker_idle_period.
--   i_queue_name  queue
--   result        tick id; NULL when not due, or when another session is ticking it
create or replace function pgque.ticker(i_queue_name text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fresh boolean := pg_current_xact_id_if_assigned() is null;
    v_state pgque_internal.queue_state;
    v_queue pgque.queue;
begin
    perform pgque_internal.require_read_committed('ticker');
    select * into v_state from pgque_internal.ticker_state(i_queue_name, true);
    select * into v_queue from pgque.queue q where q.queue_name = i_queue_name;
    if not found then
        raise exception 'no such queue: %', i_queue_name;
    end if;
    if v_queue.queue_external_ticker then
        raise exception 'queue "%" has an external ticker', i_queue_name;
    end if;
    if v_queue.queue_ticker_paused then
        raise exception 'ticker of queue "%" is paused', i_queue_name;
    end if;
    return pgque_internal.tick_if_due(v_state, v_fresh);
end
$$;

-- Ticks every queue that is due; a queue that fails is reported by a warning and stops no other.
--   result  number of queues ticked
create or replace function pgque.ticker() returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fresh  boolean := pg_current_xact_id_if_assigned() is null;
    v_states pgque_internal.queue_state[];
    v_state  pgque_internal.queue_state;
    v_count  bigint := 0;
begin
    perform pgque_internal.require_read_committed('ticker');
    select array_agg(s) into v_states from pgque_internal.ticker_state(null, true) s where s.served;
    foreach v_state in array coalesce(v_states, '{}') loop
        begin
            if pgque_internal.tick_if_due(v_state, v_fresh) is not null then
                v_count := v_count + 1;
            end if;
        exception
            when others then
                raise warning 'ticker of queue "%" failed: %', v_state.queue_name, sqlerrm;
        end;
    end loop;
    return v_count;
end
$$;

-- Records a tick made elsewhere, for a queue with an external ticker.
--   i_queue_name      queue
--   i_tick_id         id, higher than the newest
--   i_orig_timestamp  time of the tick
--   i_event_seq       event sequence at the tick, not lower than the newest tick's
--   result            tick id
create or replace function pgque.ticker(i_queue_name text, i_tick_id bigint, i_orig_timestamp timestamptz, i_event_seq bigint)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue pgque.queue;
    v_last  pgque.tick;
begin
    perform pgque_internal.require_read_committed('ticker');
    select * into v_queue from pgque.queue q where q.queue_name = i_queue_name for no key update;
    if not found then
        raise exception 'queue not found: %', i_queue_name;
    end if;
    if v_queue.queue_ticker_paused then
        raise exception 'ticker of queue "%" is paused', i_queue_name;
    end if;
    if not v_queue.queue_external_ticker then
        raise exception 'queue "%" has no external ticker', i_queue_name;
    end if;
    v_last := pgque_internal.newest_tick(v_queue.queue_id);
    if i_tick_id is null or i_tick_id <= v_last.tick_id then
        raise exception 'tick_id % is not higher than the newest, %', i_tick_id, v_last.tick_id;
    end if;
    if i_event_seq is null or i_event_seq < v_last.tick_event_seq then
        raise exception 'event_seq % is lower than the newest tick''s, %', i_event_seq, v_last.tick_event_seq;
    end if;

    perform pgque.seq_setval(v_queue.queue_tick_seq, i_tick_id);
    perform pgque.seq_setval(v_queue.queue_event_seq, i_event_seq);
    insert into pgque.tick (tick_queue, tick_id, tick_time, tick_snapshot, tick_event_seq)
    values (v_queue.queue_id, i_tick_id, coalesce(i_orig_timestamp, now()), pgque_internal.tick_snapshot(), i_event_seq);
    perform pgque_internal.notify_tick(i_queue_name, i_tick_id);
    return i_tick_id;
end
$$;

-- Makes the next ticker() tick this queue, with or without events, by moving its event sequence on.
--   i_queue_name  queue
--   result        id of the newest tick
create or replace function pgque.force_next_tick(i_queue_name text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue q where q.queue_name = i_queue_name;
    if not found then
        raise exception 'queue not found: %', i_queue_name;
    end if;
    if v_queue.queue_external_ticker then
        raise exception 'queue "%" has an external ticker', i_queue_name;
    end if;
    if v_queue.queue_ticker_paused then
        raise exception 'ticker of queue "%" is paused', i_queue_name;
    end if;
    -- One by one: setting the sequence could take back ids that senders draw meanwhile.
    perform count(nextval(v_queue.queue_sequence))
    from generate_series(1, v_queue.queue_ticker_max_count::bigint * 2 + 1001);
    return (pgque_internal.newest_tick(v_queue.queue_id)).tick_id;
end
$$;

-- Same as force_next_tick.
create or replace function pgque.force_tick(i_queue_name text) returns bigint
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgque.force_next_tick(i_queue_name)
$$;

-- Sends the delayed events that are due, then ticks for a second, for schedulers that know no shorter period; commits
-- after every pass, so it must be called outside a transaction block.
create or replace procedure pgque.ticker_loop()
language plpgsql
as $$
declare
    v_start  timestamptz := pg_catalog.clock_timestamp();
    v_period interval;
    v_next   timestamptz;
begin
    -- Without a search path of its own, which it can't have since it commits, operators must match exactly.
    select pg_catalog.make_interval(secs => c.tick_period_ms::float8 operator(pg_catalog./) 1000::float8) into v_period
    from pgque.config c;
    v_next := v_start;
    perform pgque.maint_deliver_delayed();
    commit;
    loop
        perform pgque.ticker();
        commit;
        v_next := v_next + v_period;
        exit when v_next + v_period > v_start + interval '1 second';
        perform pg_catalog.pg_sleep(extract(epoch from v_next - pg_catalog.clock_timestamp()))
        where v_next > pg_catalog.clock_timestamp();
        -- The transaction that slept is as old as the last tick: the next one takes its time from a new one.
        commit;
    end loop;
end
$$;

-- Sets the tick period of ticker_loop.
--   p_period_ms  milliseconds from 1 to 1000, a divisor of 1000
--   result       the period
create or replace function pgque.set_tick_period_ms(p_period_ms integer) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_period_ms is null or p_period_ms not between 1 and 1000 or 1000 % p_period_ms <> 0 then
        raise exception 'tick period must be from 1 to 1000 ms and divide 1000, not %', coalesce(p_period_ms::text, 'NULL');
    end if;
    update pgque.config set tick_period_ms = p_period_ms;
    return p_period_ms;
end
$$;
