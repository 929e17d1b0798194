-- Leases: one instance of an application at a time moves a consumer.
--
-- What this topic guarantees
--   * An instance beats for itself, once for all its leases; a lease is written only when it is taken or given up.
--     Time is the database's.
--   * A lease is taken from an instance only when that has not beaten for as long as the lease allows. The open
--     batch then gets a new id, so that the old owner, however late it wakes, settles nothing.
--   * While a lease is alive nobody else receives, by whatever function. Settling needs no lease, only the batch
--     id: whoever holds a present one is the owner.

-- Heartbeat of an instance.
--   i_instance  name that no other instance has
create or replace function pgque.instance_beat(i_instance text) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into pgque_internal.instance as i (ins_name) values (i_instance)
    on conflict on constraint instance_pkey do update set ins_heartbeat = clock_timestamp()
$$;

-- Whether a consumer is leased by an instance that beats.
create or replace function pgque_internal.lease_is_alive(i_sub pgque_internal.sub) returns boolean
language plpgsql
as $$
begin
    return exists (select from pgque_internal.instance i
                   where i.ins_name = i_sub.sub_instance and i.ins_heartbeat > clock_timestamp() - i_sub.sub_lease);
end
$$;

-- New id for a batch that changes its owner. What was given back from it already goes on waiting for its end.
--   i_sub_id  subscription
--   i_batch   id so far; NULL: none
create or replace function pgque_internal.new_batch_id(i_sub_id int4, i_batch bigint) returns bigint
language plpgsql
as $$
declare
    v_id bigint := pgque_internal.next_batch_id();
begin
    update pgque.retry_queue r set ev_batch = v_id where r.ev_owner = i_sub_id and r.ev_batch = i_batch;
    return v_id;
end
$$;

-- Gives a lease to an instance, or to nobody; the caller holds the lock of the consumer's row. An open batch goes
-- on under a new id.
create or replace function pgque_internal.hand_over(i_sub bigint, i_instance text, i_lease interval) returns bigint
language plpgsql
as $$
declare
    v_cursor pgque_internal.cursor := pgque_internal.newest_cursor(i_sub);
    v_sub    pgque_internal.sub;
begin
    update pgque_internal.sub s
    set sub_instance = i_instance, sub_lease = i_lease, sub_epoch = s.sub_epoch + 1
    where s.sub_no = i_sub
    returning s.* into v_sub;
    if v_cursor.cur_batch is not null then
        perform pgque_internal.append_cursor(i_sub, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick,
                                             pgque_internal.new_batch_id(v_sub.sub_id, v_cursor.cur_batch), v_cursor.cur_prefix);
    end if;
    if i_instance is not null then
        -- The last owner may not have kept keys in order, and so not taken their places away.
        perform pgque_internal.drop_stale_holds(i_sub);
    end if;
    return v_sub.sub_epoch;
end
$$;

-- Refuses an instance that others may take for dead.
create or replace function pgque_internal.require_heartbeat(i_instance text, i_lease interval) returns void
language plpgsql
as $$
begin
    if i_lease is null or i_lease <= interval '0' then
        raise exception 'a lease needs a time > 0, not %', coalesce(i_lease::text, 'NULL');
    end if;
    if not exists (select from pgque_internal.instance i
                   where i.ins_name = i_instance and i.ins_heartbeat > clock_timestamp() - i_lease) then
        raise exception 'instance % has no heartbeat within the last %', coalesce(i_instance, 'NULL'), i_lease
            using hint = 'Call pgque.instance_beat(instance) every few seconds.';
    end if;
end
$$;

-- Takes or keeps the lease of a consumer. Waits for nobody: a loser asks again when notified of a release, or
-- after a while.
--   i_queue, i_consumer  consumer, or slot of a partitioned one by its name
--   i_instance           instance, which must have beaten within the lease's time
--   i_lease              after how long without a heartbeat the lease may be taken by another
--   result               epoch of the lease; NULL when another instance holds it
create or replace function pgque.lease_acquire(i_queue text, i_consumer text, i_instance text, i_lease interval) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub pgque_internal.sub;
begin
    perform pgque_internal.require_heartbeat(i_instance, i_lease);
    v_sub := pgque_internal.find_sub(i_queue, i_consumer);
    if v_sub.sub_instance = i_instance and v_sub.sub_lease = i_lease then
        return v_sub.sub_epoch;
    end if;
    if v_sub.sub_instance <> i_instance and pgque_internal.lease_is_alive(v_sub) then
        return null;
    end if;

    if v_sub.sub_no is null then
        raise exception 'Not subscriber to queue: %/%', coalesce(i_queue, 'NULL'), coalesce(i_consumer, 'NULL')
            using hint = 'Subscribe first: select pgque.subscribe(queue, consumer).';
    end if;
    if pgque_internal.slot_is_claimed(v_sub) then
        return null;
    end if;
    -- Who has the lock may be in the middle of a handler's transaction, for as long as it likes.
    select * into v_sub from pgque_internal.sub s where s.sub_no = v_sub.sub_no for no key update skip locked;
    if not found then
        return null;
    end if;
    if v_sub.sub_role <> 'normal' then
        raise exception 'consumer % on % is shared by a cooperative group and cannot be leased', i_consumer, i_queue;
    end if;
    if v_sub.sub_instance = i_instance then
        update pgque_internal.sub s set sub_lease = i_lease where s.sub_no = v_sub.sub_no and s.sub_lease <> i_lease;
        return v_sub.sub_epoch;
    end if;
    if pgque_internal.lease_is_alive(v_sub) then
        return null;
    end if;
    return pgque_internal.hand_over(v_sub.sub_no, i_instance, i_lease);
end
$$;

-- How long a lease stays with its holder at least, so that who waits for it needn't ask before.
--   i_queue, i_consumer  as of lease_acquire
--   result               time until it may be taken, counted from the holder's last heartbeat; not positive: it may
--                        be by now; NULL: nobody holds it
create or replace function pgque.lease_left(i_queue text, i_consumer text) returns interval
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select i.ins_heartbeat + s.sub_lease - clock_timestamp()
    from pgque_internal.find_sub(i_queue, i_consumer) s
    join pgque_internal.instance i on i.ins_name = s.sub_instance
$$;

-- Gives a lease up, and wakes who listens to the queue.
--   i_queue, i_consumer, i_instance  as of lease_acquire
--   i_epoch                          epoch of the lease
--   result                           whether it was held; false changes nothing
create or replace function pgque.lease_release(i_queue text, i_consumer text, i_instance text, i_epoch bigint) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub pgque_internal.sub := pgque_internal.lock_sub(i_queue, i_consumer);
begin
    if v_sub.sub_instance is distinct from i_instance or v_sub.sub_epoch is distinct from i_epoch then
        return false;
    end if;
    perform pgque_internal.hand_over(v_sub.sub_no, null, null);
    perform pg_notify('pgque_' || i_queue, 'lease ' || i_consumer);
    return true;
end
$$;

-- Receives as the holder of a consumer's lease; otherwise like receive_batch.
--   i_instance, i_epoch  lease; error 'lease of … lost' when it is not held (any more)
create or replace function pgque.receive_leased(
    i_queue text, i_consumer text, i_instance text, i_epoch bigint, i_max_rows integer, i_max_bytes bigint)
returns table (msg_id bigint, batch_id bigint, type text, payload text, retry_count int4, created_at timestamptz,
               extra1 text, extra2 text, extra3 text, extra4 text, more boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub       pgque_internal.sub;
    v_last_tick bigint;
    v_page      pgque_internal.page;
begin
    perform pgque_internal.check_page(i_max_rows, i_max_bytes);
    v_sub := pgque_internal.find_sub(i_queue, i_consumer);
    if v_sub.sub_no is not null and not pgque_internal.has_work(v_sub) then
        perform pgque_internal.require_lease(v_sub, i_queue, i_consumer, i_instance, i_epoch);
        return;
    end if;
    if v_sub.sub_part is not null then
        v_last_tick := pgque_internal.slots_last_tick(v_sub);
    end if;
    v_sub := pgque_internal.lock_found(v_sub);
    if v_sub.sub_no is null then
        v_sub := pgque_internal.lock_sub(i_queue, i_consumer);
    end if;
    perform pgque_internal.require_lease(v_sub, i_queue, i_consumer, i_instance, i_epoch);
    v_page := pgque_internal.open_merged(v_sub, i_max_rows, i_max_bytes, v_last_tick);
    if v_page.events is not null then
        return query select * from pgque_internal.page_rows(v_page);
    elsif v_page.query is not null then
        return query execute v_page.query using i_max_rows, i_max_bytes;
    end if;
end
$$;

-- Ticks the queue and receives, in one transaction: for an instance that has just committed events of its own and
-- would wait for somebody else's tick. That tick notifies unless nobody but the caller waits for it: the queue has no
-- other consumer, and the caller receives what the tick covers.
--   parameters  as of receive_leased; not for slots of partitioned consumers
--   tick_id     the tick that was taken; NULL: none was, since somebody else is about to tick, or the tick failed, or
--               all is covered by ticks
--   result      otherwise as of receive_leased; no rows also while the consumer is locked by another transaction
create or replace function pgque.tick_and_receive_leased(
    i_queue text, i_consumer text, i_instance text, i_epoch bigint, i_max_rows integer, i_max_bytes bigint)
returns table (msg_id bigint, batch_id bigint, type text, payload text, retry_count int4, created_at timestamptz,
               extra1 text, extra2 text, extra3 text, extra4 text, more boolean, tick_id bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fresh   boolean := pg_current_xact_id_if_assigned() is null;
    v_sub     pgque_internal.sub := pgque_internal.find_sub(i_queue, i_consumer);
    v_seq     bigint;
    v_name    text;
    v_tick_id bigint;
    v_cursor  pgque_internal.cursor;
    v_page    pgque_internal.page;
begin
    perform pgque_internal.check_page(i_max_rows, i_max_bytes);
    perform pgque_internal.require_read_committed('tick_and_receive_leased');
    -- The ticks of who has lost the lease are as good as others', but nobody waits for them.
    perform pgque_internal.require_lease(v_sub, i_queue, i_consumer, i_instance, i_epoch);
    if v_sub.sub_part is not null then
        raise exception 'consumer % is a slot of a partitioned consumer: tick, then receive it', i_consumer;
    end if;
    select coalesce(pg_sequence_last_value(q.queue_sequence), 0), q.queue_name into v_seq, v_name
    from pgque.queue q
    where q.queue_id = v_sub.sub_queue and not q.queue_ticker_paused and not q.queue_external_ticker;
    if found then
        v_tick_id := (pgque_internal.tick_if_new(v_sub.sub_queue, v_seq, v_fresh, false)).tick_id;
    end if;
    -- Waiting would keep all others of the queue waiting for the tick, which wakes who receives.
    select * into v_sub from pgque_internal.sub s where s.sub_no = v_sub.sub_no for no key update skip locked;
    if found then
        perform pgque_internal.require_lease(v_sub, i_queue, i_consumer, i_instance, i_epoch);
        v_cursor := pgque_internal.newest_cursor(v_sub.sub_no);
        v_page := pgque_internal.open_next(v_sub, v_cursor, false, i_max_rows, i_max_bytes, null, v_tick_id);
    end if;
    -- Whoever registers after this look, and receives for the first time before the tick is committed, isn't woken by
    -- it: he gets what it covers with the next tick or poll.
    if v_tick_id is not null
       and (v_page.batch_id is null or v_cursor.cur_next_tick is not null or v_cursor.cur_last_tick + 1 <> v_tick_id
            or exists (select from pgque_internal.sub s where s.sub_queue = v_sub.sub_queue and s.sub_no <> v_sub.sub_no)) then
        perform pgque_internal.notify_tick(v_name, v_tick_id);
    end if;
    if v_page.events is not null then
        return query select p.*, v_tick_id from pgque_internal.page_rows(v_page) p;
    elsif v_page.query is not null then
        return query execute format('select p.*, %L::bigint from (%s) p', v_tick_id, v_page.query)
            using i_max_rows, i_max_bytes;
    end if;
end
$$;

-- Finishes a batch of which nothing failed, and receives the next one, in one transaction.
--   i_batch_id  batch; error 'batch not found: …' when it is not open any more
--   i_instance, i_epoch, i_max_rows, i_max_bytes, result  as of receive_leased
create or replace function pgque.settle_and_receive_leased(
    i_batch_id bigint, i_instance text, i_epoch bigint, i_max_rows integer, i_max_bytes bigint)
returns table (msg_id bigint, batch_id bigint, type text, payload text, retry_count int4, created_at timestamptz,
               extra1 text, extra2 text, extra3 text, extra4 text, more boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_open     record;
    v_sub      pgque_internal.sub;
    v_queue    text;
    v_consumer text;
    v_page     pgque_internal.page;
begin
    perform pgque_internal.check_page(i_max_rows, i_max_bytes);
    v_open := pgque_internal.find_open(i_batch_id, true);
    v_sub := v_open.sub;
    if v_sub.sub_no is null then
        raise exception 'batch not found: %', coalesce(i_batch_id::text, 'NULL')
            using hint = 'It was finished, or taken over by another owner.';
    end if;
    if v_sub.sub_part is not null or v_sub.sub_role <> 'normal' then
        raise exception 'batch % is of a consumer that several share: settle it, then receive', i_batch_id;
    end if;
    if v_sub.sub_instance is distinct from i_instance or v_sub.sub_epoch is distinct from i_epoch then
        select q.queue_name, c.co_name into v_queue, v_consumer
        from pgque.queue q, pgque.consumer c
        where q.queue_id = v_sub.sub_queue and c.co_id = v_sub.sub_consumer;
    end if;
    perform pgque_internal.require_lease(v_sub, v_queue, v_consumer, i_instance, i_epoch);
    v_page := pgque_internal.open_next(v_sub, v_open.cur, true, i_max_rows, i_max_bytes, null, null);
    if v_page.events is not null then
        return query select * from pgque_internal.page_rows(v_page);
    elsif v_page.query is not null then
        return query execute v_page.query using i_max_rows, i_max_bytes;
    end if;
end
$$;

-- Refuses who does not hold a lease.
create or replace function pgque_internal.require_lease(
    i_sub pgque_internal.sub, i_queue text, i_consumer text, i_instance text, i_epoch bigint)
returns void
language plpgsql
as $$
begin
    if i_instance is null or i_sub.sub_instance is distinct from i_instance or i_sub.sub_epoch is distinct from i_epoch then
        raise exception 'lease of consumer % on % lost: instance % holds epoch %, not % with %', i_consumer, i_queue,
            coalesce(i_sub.sub_instance, 'NULL'), i_sub.sub_epoch, coalesce(i_instance, 'NULL'), coalesce(i_epoch::text, 'NULL')
            using errcode = 'lock_not_available', hint = 'Acquire it again with pgque.lease_acquire.';
    end if;
end
$$;

-- Who holds which lease.
--   alive   whether its instance has beaten within the lease's time
create or replace function pgque.leases()
returns table (queue_name text, consumer_name text, instance text, epoch bigint, last_heartbeat timestamptz, alive boolean)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select q.queue_name, c.co_name, s.sub_instance, s.sub_epoch, i.ins_heartbeat,
           i.ins_heartbeat > clock_timestamp() - s.sub_lease
    from pgque_internal.sub s
    join pgque.queue q on q.queue_id = s.sub_queue
    join pgque.consumer c on c.co_id = s.sub_consumer
    join pgque_internal.instance i on i.ins_name = s.sub_instance
    order by q.queue_name, c.co_name
$$;

-- Gives up the leases of dead instances, takes their members out of their groups, and forgets instances that have not beaten for a day.
--   result  number of leases given up
create or replace function pgque_internal.drop_dead_leases() returns integer
language plpgsql
as $$
declare
    v_sub   record;
    v_count integer := 0;
begin
    for v_sub in
        select s.sub_no, q.queue_name, c.co_name
        from pgque_internal.sub s
        join pgque_internal.instance i on i.ins_name = s.sub_instance
        join pgque.queue q on q.queue_id = s.sub_queue
        join pgque.consumer c on c.co_id = s.sub_consumer
        where i.ins_heartbeat <= clock_timestamp() - s.sub_lease and s.sub_role = 'normal'
        for no key update of s skip locked
    loop
        perform pgque_internal.hand_over(v_sub.sub_no, null, null);
        perform pg_notify('pgque_' || v_sub.queue_name, 'lease ' || v_sub.co_name);
        v_count := v_count + 1;
    end loop;
    v_count := v_count + pgque_internal.drop_dead_members();
    delete from pgque_internal.instance i
    where i.ins_heartbeat < clock_timestamp() - interval '1 day'
      and not exists (select from pgque_internal.sub s where s.sub_instance = i.ins_name);
    return v_count;
end
$$;
