-- Rotation and maintenance: space comes back by TRUNCATE, one slot of a ring at a time.
--
-- What this topic guarantees
--   * An event slot is emptied only under an exclusive lock on it, so that no writer is inside, and only when
--     no row in it lies beyond the slowest consumer's position. A sender that picked the slot long ago keeps
--     it from being emptied, or appends to it afterwards; either way its event is found.
--   * Locks that others would queue behind are not waited for, or only for a moment; what could not be done is
--     done by the next call.
--   * maint() finishes what an earlier transaction began, and one failing queue or hook stops no other.

-- Turns a queue's ring when its rotation period is over: empties the oldest slot and sends new events there.
-- Does nothing when that is not due or not possible yet.
--   i_queue_name  queue
--   result        0
create or replace function pgque.maint_rotate_tables_step1(i_queue_name text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue  pgque.queue;
    v_seq    bigint;
    v_slot   int4;
    v_leaf   text;
    v_lowest bigint;
    v_seen   pg_snapshot;
    v_needed boolean := false;
    v_txid   xid8;
    v_first  bigint;
begin
    perform pgque_internal.require_read_committed('rotation');
    -- Against tickers, and against registrations, whose position would count.
    select * into v_queue from pgque.queue q where q.queue_name = i_queue_name for update skip locked;
    if not found or v_queue.queue_switch_step2 is null
       or not coalesce(v_queue.queue_switch_time + v_queue.queue_rotation_period < now(), false) then
        return 0;
    end if;
    if pg_current_xact_id()::text::bigint < v_queue.queue_switch_step1 then
        raise exception 'maint failure: queue "%" was rotated by transaction %, this one is %', i_queue_name,
            v_queue.queue_switch_step1, pg_current_xact_id()
            using hint = 'The database was restored into a cluster with lower transaction ids.';
    end if;

    v_slot := (v_queue.queue_cur_table + 1) % v_queue.queue_ntables;
    v_leaf := v_queue.queue_data_pfx || '_' || v_slot;
    begin
        execute format('lock table %s in access exclusive mode nowait', v_leaf);
    exception
        when lock_not_available then
            return 0;
    end;

    select min(s.sub_last_tick) into v_lowest from pgque.subscription s where s.sub_queue = v_queue.queue_id;
    if v_lowest is null then
        -- Nobody reads; a tick keeps whoever subscribes next from starting before what is emptied now.
        v_seq := coalesce(pg_sequence_last_value(v_queue.queue_sequence), 0);
        perform pgque_internal.take_tick(v_queue, v_seq, false, false, true);
        v_lowest := (pgque_internal.newest_tick(v_queue.queue_id)).tick_id;
    else
        select t.tick_snapshot into v_seen from pgque.tick t
        where t.tick_queue = v_queue.queue_id and t.tick_id = v_lowest limit 1;
        if not found then
            raise exception 'maint failure: a consumer of queue "%" stands at tick %, which does not exist',
                i_queue_name, v_lowest;
        end if;
        execute format('select exists (select from %s e where e.ev_txid >= $1 and not pg_visible_in_snapshot(e.ev_txid, $2)'
                       ' order by e.ev_txid limit 1)', v_leaf)
        into v_needed using pg_snapshot_xmin(v_seen), v_seen;
    end if;
    if v_needed then
        return 0;
    end if;

    -- Nobody may start any more from a tick that did not see all of what goes now.
    execute format('select e.ev_txid from %s e order by e.ev_txid desc limit 1', v_leaf) into v_txid;
    if v_txid is not null then
        select min(t.tick_id) into v_first from pgque.tick t
        where t.tick_queue = v_queue.queue_id and t.tick_id >= v_queue.queue_first_tick and t.tick_id < v_lowest
          and pg_snapshot_xmin(t.tick_snapshot) > v_txid;
        v_first := coalesce(v_first, v_lowest);
    end if;

    execute format('truncate table %s', v_leaf);
    -- Of a queue of an earlier release it isn't yet; that one now has the lock that takes.
    perform pgque_internal.open_leaf(v_queue.queue_id, v_slot);
    update pgque.queue q
    set queue_first_tick = coalesce(v_first, q.queue_first_tick),
        queue_cur_table = v_slot,
        queue_switch_time = now(),
        queue_switch_step1 = pg_current_xact_id()::text::bigint,
        queue_switch_step2 = null
    where q.queue_id = v_queue.queue_id;
    return 0;
end
$$;

-- Completes the rotations that were begun; must run in a later transaction than step 1.
--   result  0
create or replace function pgque.maint_rotate_tables_step2() returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update pgque.queue q
    set queue_switch_step2 = pg_current_xact_id()::text::bigint
    where q.queue_switch_step2 is null;
    return 0;
end
$$;

-- Maintenance that is due, in order.
--   func_name  function
--   func_arg   its argument; NULL: none
create or replace function pgque.maint_operations(out func_name text, out func_arg text) returns setof record
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue  pgque.queue;
    v_step2  boolean := false;
    v_hook   text;
begin
    for v_queue in select * from pgque.queue q order by q.queue_name loop
        if v_queue.queue_switch_step2 is null then
            v_step2 := true;
        elsif v_queue.queue_switch_time + v_queue.queue_rotation_period < now() then
            v_step2 := true;
            func_name := 'pgque.maint_rotate_tables_step1';
            func_arg := v_queue.queue_name;
            return next;
        end if;
    end loop;
    if v_step2 then
        func_name := 'pgque.maint_rotate_tables_step2';
        func_arg := null;
        return next;
    end if;
    for v_queue in select * from pgque.queue q where q.queue_extra_maint is not null order by q.queue_name loop
        foreach v_hook in array v_queue.queue_extra_maint loop
            func_name := v_hook;
            func_arg := v_queue.queue_name;
            return next;
        end loop;
    end loop;
    for func_arg in select * from pgque.maint_tables_to_vacuum() loop
        func_name := 'vacuum';
        return next;
    end loop;
end
$$;

-- Tables that need a vacuum by hand.
--   result  names; none while autovacuum is on
create or replace function pgque.maint_tables_to_vacuum() returns setof text
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select t.name
    from unnest(array['pgque.queue', 'pgque.consumer', 'pgque_internal.sub', 'pgque_internal.ring', 'pgque.retry_queue',
                      'pgque.dead_letter']) t (name)
    where current_setting('autovacuum') = 'off'
$$;

-- Function that maint() may run for a queue: function(text) returns integer, made by the owner of the engine; one
-- of the server's own, which may have the same owner, is none.
--   i_name  name as given in queue_extra_maint; without a schema it is looked for in pgque
--   result  its qualified name; NULL when there is none
create or replace function pgque_internal.maint_hook(i_name text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select p.oid::regproc::text
        from pg_proc p
        where p.oid = coalesce(to_regprocedure(i_name || '(text)'), to_regprocedure('pgque.' || i_name || '(text)'))
          and p.proowner = (select m.proowner from pg_proc m where m.oid = 'pgque.maint()'::regprocedure)
          and p.prokind = 'f'
          and p.prorettype = 'int4'::regtype
          and p.pronamespace <> all (array['pg_catalog', 'information_schema']::regnamespace[]));
end
$$;

-- Runs a queue's hook.
--   i_hook   as of queue_extra_maint
--   i_queue  queue, the hook's argument
--   result   what the hook returned; NULL, with a warning, when there is no such function
create or replace function pgque_internal.run_hook(i_hook text, i_queue text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_hook  text := pgque_internal.maint_hook(i_hook);
    v_value integer;
begin
    if v_hook is null then
        raise warning 'maint: hook "%" of queue "%" is no function(text) returns integer of the owner of pgque.maint()',
            i_hook, i_queue;
        return null;
    end if;
    execute format('select %s($1)', v_hook) into v_value using i_queue;
    return v_value;
end
$$;

-- Runs the maintenance.
--   i_hooks  whether the queues' hooks are run too
--   result   sum of what the operations returned
create or replace function pgque_internal.run_maint(i_hooks boolean) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_step  record;
    v_value integer;
    v_sum   integer := 0;
begin
    perform pgque_internal.require_read_committed('maint');
    -- Step 2 of rotations that an earlier transaction began; ours come with the next call.
    update pgque.queue q
    set queue_switch_step2 = pg_current_xact_id()::text::bigint
    where q.queue_switch_step2 is null and q.queue_switch_step1 <> pg_current_xact_id()::text::bigint;

    -- Hooks may take their time; what locks tables comes after them, and the event root last.
    for v_step in
        select o.func_name, o.func_arg, 1 as turn
        from pgque.maint_operations() o
        where i_hooks
          and o.func_name <> all (array['vacuum', 'pgque.maint_rotate_tables_step1', 'pgque.maint_rotate_tables_step2'])
        union all
        select 'pgque_internal.' || f, null, 1 + n::int4
        from unnest(array['check_readers', 'exchange_all_slots', 'drop_dead_leases', 'drop_consumers', 'drop_expired_keys', 'check_holds', 'turn_cursor_ring',
                          'turn_tick_ring']) with ordinality u (f, n)
        union all
        select o.func_name, o.func_arg, 10
        from pgque.maint_operations() o
        where o.func_name = 'pgque.maint_rotate_tables_step1'
        union all
        select 'pgque_internal.' || f, null, 10 + n::int4
        from unnest(array['maint_delayed', 'empty_delay_slots', 'drop_orphans', 'turn_inbox']) with ordinality u (f, n)
        order by turn
    loop
        begin
            if v_step.turn = 10 then
                v_value := pgque.maint_rotate_tables_step1(v_step.func_arg);
            elsif v_step.turn > 1 then
                execute format('select %s()', v_step.func_name) into v_value;
            else
                v_value := pgque_internal.run_hook(v_step.func_name, v_step.func_arg);
            end if;
            v_sum := v_sum + coalesce(v_value, 0);
        exception
            when others then
                raise warning 'maint: %(%) failed: %', v_step.func_name, coalesce(v_step.func_arg, ''), sqlerrm;
        end;
    end loop;
    return v_sum;
end
$$;

-- Runs all maintenance: turns the rings of queues, ticks and cursors, runs the queues' hooks, sends delayed events
-- that are due, removes expired idempotency keys and what dropped queues and ended subscriptions left. Retries are
-- moved by maint_retry_events. Call it every half minute or so.
--   result  sum of what the operations returned
create or replace function pgque.maint() returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.run_maint(true);
end
$$;

-- Runs the maintenance but for the queues' hooks, which may take their time: for callers that run these apart, with
-- maint_hook.
--   result  sum of what the operations returned
create or replace function pgque.maint_engine() returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.run_maint(false);
end
$$;

-- Hooks that queues have, in the order in which maint() runs them.
--   hook   as of queue_extra_maint
--   queue  queue that has it
create or replace function pgque.maint_hooks(out hook text, out queue text) returns setof record
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select u.hook, q.queue_name
    from pgque.queue q, unnest(q.queue_extra_maint) with ordinality u (hook, n)
    order by q.queue_name, u.n
$$;

-- Runs one hook that a queue has.
--   i_queue  queue
--   i_hook   as of queue_extra_maint
--   result   what the hook returned; 0 when the queue has it no more
create or replace function pgque.maint_hook(i_queue text, i_hook text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from pgque.queue q where q.queue_name = i_queue and i_hook = any (q.queue_extra_maint);
    if not found then
        return 0;
    end if;
    return coalesce(pgque_internal.run_hook(i_hook, i_queue), 0);
end
$$;

-- ---------------------------------------------------------------------------------------------------
-- Rings of ticks and cursors
-- ---------------------------------------------------------------------------------------------------

-- A ring whose slot has grown enough to be turned, its row locked.
--   i_ring, i_table  ring and prefix of its tables
--   result           the ring; NULL when it need not turn, or another session turns it
create or replace function pgque_internal.full_ring(i_ring text, i_table text) returns pgque_internal.ring
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ring pgque_internal.ring;
begin
    select * into v_ring from pgque_internal.ring r
    where r.ring_name = i_ring
      and r.ring_switched <= clock_timestamp() - r.ring_min_age
      and pg_relation_size((i_table || '_' || r.ring_slot)::regclass) >= r.ring_min_bytes
    for update skip locked;
    return v_ring;
end
$$;

-- Copies ticks that are still needed and stand only in a given slot to the current one: those from the slowest
-- consumer of their queue on, those whose events are still there, and the newest twenty.
--   i_slot        slot to be emptied
--   i_most_share  do nothing when a larger share of the slot's rows is needed: emptying it would not pay
--   result        rows copied; -1: not done because of the share
create or replace function pgque_internal.copy_needed_ticks(i_slot int4, i_most_share float8) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ids    int4[];
    v_floors bigint[];
    v_needed bigint;
    v_total  bigint;
begin
    select array_agg(q.queue_id),
           array_agg(least((pgque_internal.newest_tick(q.queue_id)).tick_id - 19, s.lowest, q.queue_first_tick))
    into v_ids, v_floors
    from pgque.queue q
    left join (
        select s.sub_queue, min(s.sub_last_tick) as lowest from pgque.subscription s group by s.sub_queue
    ) s on s.sub_queue = q.queue_id;

    select count(*), count(*) filter (where f.floor <= t.tick_id) into v_total, v_needed
    from pgque.tick t
    left join unnest(v_ids, v_floors) f (queue_id, floor) on f.queue_id = t.tick_queue
    where t.tick_slot = i_slot
      and not exists (select from pgque.tick o
                      where o.tick_queue = t.tick_queue and o.tick_id = t.tick_id and o.tick_slot <> i_slot);
    if v_needed = 0 then
        return 0;
    end if;
    if v_needed > v_total * i_most_share then
        return -1;
    end if;
    insert into pgque.tick (tick_queue, tick_id, tick_time, tick_snapshot, tick_event_seq, tick_event_slots, tick_xid)
    select t.tick_queue, t.tick_id, t.tick_time, t.tick_snapshot, t.tick_event_seq, t.tick_event_slots, t.tick_xid
    from pgque.tick t
    join unnest(v_ids, v_floors) f (queue_id, floor) on f.queue_id = t.tick_queue and f.floor <= t.tick_id
    where t.tick_slot = i_slot
      and not exists (select from pgque.tick o
                      where o.tick_queue = t.tick_queue and o.tick_id = t.tick_id and o.tick_slot <> i_slot);
    return v_needed;
end
$$;

-- Turns a ring: empties its next slot and makes it the current one. Waits a moment for the lock, since readers
-- come and go; gives up when one stays.
--   i_ring    'tick' or 'cursor'
--   result    whether it was turned; false when the slot is in use, or still needed
create or replace function pgque_internal.turn_ring(i_ring text, i_slot int4) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
as $$
declare
    v_table constant text := format('%s_%s', case i_ring when 'tick' then 'pgque.tick' else 'pgque_internal.cursor' end, i_slot);
begin
    execute format('lock table %s in access exclusive mode', v_table);
    -- Only now nobody is inside who chose this slot long ago.
    if i_ring = 'tick' and pgque_internal.copy_needed_ticks(i_slot, 1) <> 0
       or i_ring = 'cursor' and exists (select from pgque_internal.sub s where s.sub_cursor_slot = i_slot) then
        return false;
    end if;
    execute format('truncate table %s', v_table);
    update pgque_internal.ring r set ring_slot = i_slot, ring_switched = clock_timestamp() where r.ring_name = i_ring;
    return true;
exception
    when lock_not_available then
        return false;
end
$$;

-- Turns the ring of ticks when its slot is full.
--   result  0
create or replace function pgque_internal.turn_tick_ring() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ring   pgque_internal.ring := pgque_internal.full_ring('tick', 'pgque.tick');
    v_next   int4 := (v_ring.ring_slot + 1) % 3;
    v_copied bigint;
begin
    if v_ring.ring_name is null then
        return 0;
    end if;
    v_copied := pgque_internal.copy_needed_ticks(v_next, 0.5);
    if v_copied < 0 then
        -- A consumer is far behind. Look again when the ring is due anew.
        update pgque_internal.ring r set ring_switched = clock_timestamp() where r.ring_name = 'tick';
    elsif v_copied = 0 then
        perform pgque_internal.turn_ring('tick', v_next);
    end if;
    -- What was copied just now must be visible to everybody before its origin goes: the next call turns.
    return 0;
end
$$;

-- Turns the ring of cursors when its slot is full and every consumer has left the other ones.
--   result  0
create or replace function pgque_internal.turn_cursor_ring() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_slot   int2 := pgque_internal.ring_slot('cursor');
    v_sub    bigint;
    v_cursor pgque_internal.cursor;
    v_ring   pgque_internal.ring;
begin
    -- Consumers that move come along by themselves; the idle ones are taken along here.
    for v_sub in
        select s.sub_no from pgque_internal.sub s where s.sub_cursor_slot <> v_slot for no key update skip locked
    loop
        v_cursor := pgque_internal.newest_cursor(v_sub);
        perform pgque_internal.append_cursor(v_sub, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick,
                                             v_cursor.cur_batch, v_cursor.cur_prefix, v_cursor.cur_active);
    end loop;
    v_ring := pgque_internal.full_ring('cursor', 'pgque_internal.cursor');
    if v_ring.ring_name is not null
       and not exists (select from pgque_internal.sub s where s.sub_cursor_slot <> v_ring.ring_slot) then
        perform pgque_internal.turn_ring('cursor', (v_ring.ring_slot + 1) % 3);
    end if;
    return 0;
end
$$;

-- Removes event tables whose queue was dropped while they were in use.
--   result  number of queues whose tables went
create or replace function pgque_internal.drop_orphans() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id    int4;
    v_count integer := 0;
begin
    foreach v_id in array array(
        select substr(c.relname, length('event_') + 1)::int4
        from pg_inherits i
        join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'pgque.event'::regclass
          and not exists (select from pgque.queue q where q.queue_data_pfx = 'pgque.' || c.relname))
    loop
        exit when not pgque_internal.drop_events(v_id);
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

-- Removes names of consumers that have neither a subscription nor a dead letter.
--   result  0
create or replace function pgque_internal.drop_consumers() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from pgque.consumer c
    where c.co_id in (
        select c.co_id from pgque.consumer c
        where not exists (select from pgque_internal.sub s where s.sub_consumer = c.co_id)
          and not exists (select from pgque.dead_letter d where d.dl_consumer_id = c.co_id)
        for update of c skip locked);
    return 0;
end
$$;
