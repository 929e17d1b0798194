-- Subscriptions: who reads a queue, and where each consumer stands.
--
-- What this topic guarantees
--   * A consumer's position moves by appending a row; nothing is updated, so a held snapshot costs nothing.
--   * Whoever moves a consumer holds the lock of its row; a transaction whose snapshot is older than the last
--     move is refused with 40001 instead of moving the consumer back.
--   * A batch id that a crash has undone is not given out again while anybody may hold that batch; so opening one
--     need not reach the disk before it is handled.
--   * Any number of sessions may subscribe and unsubscribe one name at once, without error or deadlock:
--     unsubscribing leaves the consumer's name, and with it its dead letters, alone.

-- Id for a batch. A crash, or a failover to a standby that lags, undoes what was committed last, and the sequence then
-- gives its last values out again, while an instance may still hold the batches of them. The lower 20 bits of an id are
-- the time in units of 1/128 s, which differ for two hours: nobody settles the batch of another.
create or replace function pgque_internal.next_batch_id() returns bigint
language sql
as $$
    select (pg_catalog.nextval('pgque.batch_id_seq') << 20)
           | ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 128)::bigint & 1048575)
$$;

-- Appends a consumer's new position; the caller holds the lock of its row.
--   i_sub  registration; i_seq  number of the position it starts from; the rest: the new position
create or replace function pgque_internal.append_cursor(
    i_sub bigint, i_seq bigint, i_last_tick bigint, i_next_tick bigint, i_batch bigint, i_prefix bigint,
    i_active timestamptz default clock_timestamp())
returns void
language plpgsql
as $$
declare
    v_slot   int2;
    v_before int2;
begin
    select r.ring_slot, s.sub_cursor_slot into v_slot, v_before
    from pgque_internal.ring r, pgque_internal.sub s
    where r.ring_name = 'cursor' and s.sub_no = i_sub;
    if v_before <> v_slot then
        update pgque_internal.sub s set sub_cursor_slot = v_slot where s.sub_no = i_sub;
    end if;
    insert into pgque_internal.cursor (cur_sub, cur_seq, cur_slot, cur_last_tick, cur_next_tick, cur_batch, cur_prefix,
                                       cur_active)
    values (i_sub, i_seq + 1, v_slot, i_last_tick, i_next_tick, i_batch, i_prefix, i_active)
    on conflict do nothing;
    if not found then
        raise exception 'could not move the consumer: it was moved by another transaction'
            using errcode = 'serialization_failure', hint = 'Run the transaction again.';
    end if;
end
$$;

-- Newest position of a registration.
create or replace function pgque_internal.newest_cursor(i_sub bigint) returns pgque_internal.cursor
language plpgsql stable
as $$
declare
    v_row pgque_internal.cursor;
begin
    select c.* into v_row from pgque_internal.cursor c where c.cur_sub = i_sub order by c.cur_seq desc limit 1;
    return v_row;
end
$$;

-- A registration by names; the row is NULL when there is none.
create or replace function pgque_internal.find_sub(i_queue text, i_consumer text) returns pgque_internal.sub
language plpgsql stable
as $$
declare
    v_row pgque_internal.sub;
begin
    select s.* into v_row from pgque_internal.sub s
    where s.sub_queue = (select q.queue_id from pgque.queue q where q.queue_name = i_queue)
      and s.sub_consumer = (select c.co_id from pgque.consumer c where c.co_name = i_consumer);
    return v_row;
end
$$;

-- Locks the row of a registration that was found without a lock.
--   result  the row as it is now; NULL when it is gone
create or replace function pgque_internal.lock_found(i_sub pgque_internal.sub) returns pgque_internal.sub
language plpgsql
as $$
declare
    v_sub pgque_internal.sub;
begin
    select * into v_sub from pgque_internal.sub s where s.sub_no = i_sub.sub_no for no key update;
    return v_sub;
end
$$;

-- Finds a registration by names and locks its row until the transaction ends.
--   result  the row; error 'Not subscriber to queue: <queue>/<consumer>'
create or replace function pgque_internal.lock_sub(i_queue text, i_consumer text) returns pgque_internal.sub
language plpgsql
as $$
declare
    v_sub pgque_internal.sub;
begin
    select s.* into v_sub
    from pgque.queue q
    join pgque.consumer c on c.co_name = i_consumer
    join pgque_internal.sub s on s.sub_queue = q.queue_id and s.sub_consumer = c.co_id
    where q.queue_name = i_queue
    for no key update of s;
    if not found then
        raise exception 'Not subscriber to queue: %/%', coalesce(i_queue, 'NULL'), coalesce(i_consumer, 'NULL')
            using hint = 'Subscribe first: select pgque.subscribe(queue, consumer).';
    end if;
    return v_sub;
end
$$;

-- Id of a consumer's name, made if need be; locked so that maint() does not remove it before it is used.
create or replace function pgque_internal.consumer_id(i_consumer text) returns int4
language plpgsql
as $$
declare
    v_id int4;
begin
    loop
        select c.co_id into v_id from pgque.consumer c where c.co_name = i_consumer for key share;
        exit when found;
        insert into pgque.consumer (co_name) values (i_consumer) on conflict on constraint consumer_name_uq do nothing;
    end loop;
    return v_id;
end
$$;

-- Registers a consumer at a tick, or moves it there.
--   x_queue_name     queue
--   x_consumer_name  consumer
--   x_tick_pos       tick to start after; NULL: the newest for a new consumer, no move for an existing one
--   result           1 when new, 0 when it was registered; a move drops its open batch
create or replace function pgque.register_consumer_at(x_queue_name text, x_consumer_name text, x_tick_pos bigint)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue_id int4;
    v_first    bigint;
    v_consumer int4;
    v_tick     bigint;
    v_sub      bigint;
    v_found    pgque_internal.sub;
    v_cursor   pgque_internal.cursor;
begin
    -- Against rotation, which must not empty a slot while a new reader of it appears.
    select q.queue_id, q.queue_first_tick into v_queue_id, v_first from pgque.queue q
    where q.queue_name = x_queue_name
    for key share;
    if not found then
        raise exception 'Event queue not created yet: %', coalesce(x_queue_name, 'NULL')
            using hint = 'Create it with pgque.create_queue.';
    end if;
    if x_tick_pos is null then
        v_tick := (pgque_internal.newest_tick(v_queue_id)).tick_id;
        if v_tick is null then
            raise exception 'no ticks in queue "%": a consumer has nowhere to start', x_queue_name;
        end if;
    else
        select t.tick_id into v_tick from pgque.tick t
        where t.tick_queue = v_queue_id and t.tick_id = x_tick_pos and t.tick_id >= v_first
        limit 1;
        if not found then
            raise exception 'tick not found: % in queue "%"', x_tick_pos, x_queue_name
                using hint = format('Events are still there from tick %s on.', v_first);
        end if;
    end if;

    v_consumer := pgque_internal.consumer_id(x_consumer_name);
    insert into pgque_internal.sub (sub_id, sub_queue, sub_consumer)
    values (nextval('pgque.subscription_sub_id_seq'), v_queue_id, v_consumer)
    on conflict on constraint subscription_pkey do nothing
    returning sub_no into v_sub;
    if found then
        perform pgque_internal.append_cursor(v_sub, 0, v_tick, null, null, null);
        return 1;
    end if;
    if x_tick_pos is not null then
        v_found := pgque_internal.lock_sub(x_queue_name, x_consumer_name);
        if v_found.sub_role = 'coop_member' or v_found.sub_part is not null then
            raise exception 'consumer % on % shares its position with others and cannot be moved alone', x_consumer_name, x_queue_name
                using hint = 'Move the cooperative main consumer, or all slots of the partitioned consumer.';
        end if;
        v_sub := v_found.sub_no;
        v_cursor := pgque_internal.newest_cursor(v_sub);
        perform pgque_internal.append_cursor(v_sub, v_cursor.cur_seq, v_tick, null, null, null);
        perform pgque_internal.drop_stale_holds(v_sub);
    end if;
    return 0;
end
$$;

-- Registers a consumer at the newest tick.
--   x_queue_name   queue
--   x_consumer_id  consumer
--   result         1 when new, 0 when it was registered (its position stays)
create or replace function pgque.register_consumer(x_queue_name text, x_consumer_id text) returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgque.register_consumer_at(x_queue_name, x_consumer_id, null::bigint)
$$;

-- Registers a consumer at the newest tick; events sent after that tick are delivered to it.
--   queue     queue
--   consumer  consumer; names with '#' belong to partitioned consumers
--   result    1 when new, 0 when it was registered (its position stays)
create or replace function pgque.subscribe(queue text, consumer text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if position('#' in consumer) > 0 then
        raise exception 'consumer name must not contain #: %', consumer
            using hint = 'Names with # are those of the slots of partitioned consumers.';
    end if;
    return pgque.register_consumer_at(queue, consumer, null::bigint);
end
$$;

-- Ends a subscription; its open batch and its retries are dropped, its dead letters stay. A cooperative main
-- consumer with members is an error; an idle member leaves its group.
--   x_queue_name     queue
--   x_consumer_name  consumer
--   result           1, or 0 when there was none
create or replace function pgque.unregister_consumer(x_queue_name text, x_consumer_name text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub pgque_internal.sub := pgque_internal.find_sub(x_queue_name, x_consumer_name);
begin
    if v_sub.sub_role = 'coop_member' then
        -- Locks the group's main row first, as everybody does.
        return pgque_internal.remove_member(x_queue_name, v_sub.sub_no, 0);
    end if;
    select * into v_sub from pgque_internal.sub s where s.sub_no = v_sub.sub_no for update;
    if not found then
        return 0;
    end if;
    if v_sub.sub_role = 'coop_main' and pgque_internal.has_members(v_sub.sub_id) then
        raise exception 'cannot unregister cooperative main consumer % on %: it has members', x_consumer_name, x_queue_name
            using hint = 'Unregister them first: pgque.unregister_subconsumer(queue, consumer, subconsumer).';
    end if;
    delete from pgque_internal.sub s where s.sub_no = v_sub.sub_no;
    delete from pgque.retry_queue r where r.ev_owner = v_sub.sub_id;
    return 1;
end
$$;

-- Same as unregister_consumer.
create or replace function pgque.unsubscribe(queue text, consumer text) returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgque.unregister_consumer(queue, consumer)
$$;

-- ---------------------------------------------------------------------------------------------------
-- Writes to the view pgque.subscription, carried over to its storage
-- ---------------------------------------------------------------------------------------------------

create or replace function pgque_internal.subscription_write() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub    bigint;
    v_cursor pgque_internal.cursor;
begin
    if tg_op = 'INSERT' then
        new.sub_id := coalesce(new.sub_id, nextval('pgque.subscription_sub_id_seq')::int4);
        new.sub_role := coalesce(new.sub_role, 'normal');
        new.sub_active := coalesce(new.sub_active, now());
        insert into pgque_internal.sub (sub_id, sub_queue, sub_consumer, sub_role)
        values (new.sub_id, new.sub_queue, new.sub_consumer, new.sub_role)
        returning sub_no into v_sub;
        perform pgque_internal.append_cursor(v_sub, 0, new.sub_last_tick, new.sub_next_tick, new.sub_batch, null, new.sub_active);
        return new;
    end if;

    select s.sub_no into v_sub from pgque_internal.sub s
    where s.sub_queue = old.sub_queue and s.sub_consumer = old.sub_consumer
    for update;
    if not found then
        return null;
    end if;
    if tg_op = 'DELETE' then
        delete from pgque_internal.sub s where s.sub_no = v_sub;
        return old;
    end if;
    update pgque_internal.sub s
    set sub_id = new.sub_id, sub_queue = new.sub_queue, sub_consumer = new.sub_consumer, sub_role = new.sub_role
    where s.sub_no = v_sub
      and (s.sub_id, s.sub_queue, s.sub_consumer, s.sub_role)
          is distinct from (new.sub_id, new.sub_queue, new.sub_consumer, new.sub_role);
    if (new.sub_last_tick, new.sub_next_tick, new.sub_batch, new.sub_active)
       is distinct from (old.sub_last_tick, old.sub_next_tick, old.sub_batch, old.sub_active) then
        v_cursor := pgque_internal.newest_cursor(v_sub);
        -- Else it stays where it is, in the middle of a window maybe, of which the view shows only the start.
        if (new.sub_last_tick, new.sub_next_tick, new.sub_batch)
           is distinct from (old.sub_last_tick, old.sub_next_tick, old.sub_batch) then
            if (new.sub_last_tick, new.sub_next_tick) is distinct from (old.sub_last_tick, v_cursor.cur_next_tick) then
                v_cursor.cur_prefix := null;
            end if;
            v_cursor.cur_last_tick := new.sub_last_tick;
            v_cursor.cur_next_tick := new.sub_next_tick;
            v_cursor.cur_batch := new.sub_batch;
        end if;
        perform pgque_internal.append_cursor(v_sub, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick,
                                             v_cursor.cur_batch, v_cursor.cur_prefix, new.sub_active);
        if new.sub_last_tick is not null then
            perform pgque_internal.drop_stale_holds(v_sub);
        end if;
    end if;
    return new;
end
$$;

create or replace trigger subscription_write instead of insert or update or delete on pgque.subscription
for each row execute function pgque_internal.subscription_write();

-- Tick from which everything sent since a time is read.
--   i_queue  queue
--   i_time   time
--   result   newest tick that is not younger, or the oldest whose events are there; error 'queue not found: …'
create or replace function pgque.tick_before(i_queue text, i_time timestamptz) returns bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue q where q.queue_name = i_queue;
    if not found then
        raise exception 'queue not found: %', i_queue;
    end if;
    if i_time is null then
        raise exception 'a time is needed';
    end if;
    return coalesce(
        (select t.tick_id from pgque.tick t
         where t.tick_queue = v_queue.queue_id and t.tick_id >= v_queue.queue_first_tick and t.tick_time <= i_time
         order by t.tick_id desc limit 1),
        (select t.tick_id from pgque.tick t
         where t.tick_queue = v_queue.queue_id and t.tick_id >= v_queue.queue_first_tick
         order by t.tick_id limit 1));
end
$$;

-- Moves a consumer so that it receives everything sent since a time, as far as it is still there: events stay for
-- one to two rotation periods.
--   i_queue, i_consumer  consumer; registered if it is not
--   i_time               time
--   result               tick it stands at now; its open batch is dropped
create or replace function pgque.seek(i_queue text, i_consumer text, i_time timestamptz) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_tick bigint := pgque.tick_before(i_queue, i_time);
begin
    perform pgque.register_consumer_at(i_queue, i_consumer, v_tick);
    return v_tick;
end
$$;

-- Registers a consumer so that it receives everything sent since a time, as far as it is still there.
--   i_queue, i_consumer  consumer
--   i_time               time
--   result               1 when new, 0 when it was registered (its position stays)
create or replace function pgque.subscribe_from(i_queue text, i_consumer text, i_time timestamptz) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if pgque.subscribe(i_queue, i_consumer) = 0 then
        return 0;
    end if;
    perform pgque.register_consumer_at(i_queue, i_consumer, pgque.tick_before(i_queue, i_time));
    return 1;
end
$$;
