-- Cooperative consumers: several workers share one position, each batch goes to one of them.
--
-- What this topic guarantees
--   * A group's position moves when a batch is given out, under the lock of its main row; a worker that commits
--     before it handles its batch keeps nobody waiting.
--   * A batch whose owner has been silent for the dead interval goes to another member under a new id: the old
--     owner settles nothing any more.
--   * Polls that find nothing write nothing.

-- Name of a member's consumer.
create or replace function pgque_internal.member_name(i_consumer text, i_subconsumer text) returns text
language plpgsql immutable
as $$
begin
    if coalesce(i_consumer, '') = '' or coalesce(i_subconsumer, '') = ''
       or position('.' in i_consumer) > 0 or position('.' in i_subconsumer) > 0 then
        raise exception 'invalid names of a cooperative consumer: % and %', coalesce(quote_literal(i_consumer), 'NULL'),
            coalesce(quote_literal(i_subconsumer), 'NULL')
            using hint = 'Neither may be empty or contain a dot.';
    end if;
    return i_consumer || '.' || i_subconsumer;
end
$$;

-- Registers a member of a group, and the group with its first member, at the newest tick.
--   i_queue           queue
--   i_consumer        group; i_subconsumer: member
--   i_convert_normal  whether a normal consumer of the group's name becomes the group, keeping its position; it
--                     must have no open batch
--   result            1 when new, 0 when the member was registered
create or replace function pgque.register_subconsumer(
    i_queue text, i_consumer text, i_subconsumer text, i_convert_normal boolean default false)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_name   text := pgque_internal.member_name(i_consumer, i_subconsumer);
    v_main   pgque_internal.sub;
    v_member pgque_internal.sub;
    v_sub    bigint;
begin
    loop
        if pgque.register_consumer_at(i_queue, i_consumer, null::bigint) = 1 then
            update pgque_internal.sub s set sub_role = 'coop_main'
            where s.sub_no = (pgque_internal.find_sub(i_queue, i_consumer)).sub_no;
        end if;
        v_main := pgque_internal.lock_found(pgque_internal.find_sub(i_queue, i_consumer));
        -- Otherwise it was unregistered since.
        exit when v_main.sub_no is not null;
    end loop;
    if v_main.sub_role = 'coop_member' or v_main.sub_part is not null then
        raise exception 'consumer % on queue % is already registered incompatibly', i_consumer, i_queue;
    end if;
    if v_main.sub_role = 'normal' then
        if not coalesce(i_convert_normal, false) then
            raise exception 'consumer % on queue % is already a normal consumer', i_consumer, i_queue
                using hint = 'Register the first member with i_convert_normal => true.';
        end if;
        if v_main.sub_instance is not null or (pgque_internal.newest_cursor(v_main.sub_no)).cur_next_tick is not null then
            raise exception 'cannot convert active normal consumer % on queue %', i_consumer, i_queue
                using hint = 'Finish its batch, and release its lease, first.';
        end if;
        update pgque_internal.sub s set sub_role = 'coop_main' where s.sub_no = v_main.sub_no;
    end if;

    insert into pgque_internal.sub (sub_id, sub_queue, sub_consumer, sub_role)
    values (v_main.sub_id, v_main.sub_queue, pgque_internal.consumer_id(v_name), 'coop_member')
    on conflict on constraint subscription_pkey do nothing
    returning sub_no into v_sub;
    if found then
        perform pgque_internal.append_cursor(v_sub, 0, null, null, null, null);
        return 1;
    end if;
    v_member := pgque_internal.lock_sub(i_queue, v_name);
    if v_member.sub_role <> 'coop_member' or v_member.sub_id <> v_main.sub_id then
        raise exception 'consumer % on queue % is already registered incompatibly', v_name, i_queue;
    end if;
    perform pgque_internal.touch(v_member.sub_no);
    return 0;
end
$$;

-- Same as register_subconsumer.
create or replace function pgque.subscribe_subconsumer(
    i_queue text, i_consumer text, i_subconsumer text, i_convert_normal boolean default false)
returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgque.register_subconsumer(i_queue, i_consumer, i_subconsumer, i_convert_normal)
$$;

-- Notes that a consumer is alive; its row is locked.
create or replace function pgque_internal.touch(i_sub bigint) returns void
language plpgsql
as $$
declare
    v_cursor pgque_internal.cursor := pgque_internal.newest_cursor(i_sub);
begin
    perform pgque_internal.append_cursor(i_sub, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick,
                                         v_cursor.cur_batch, v_cursor.cur_prefix);
end
$$;

-- Heartbeat of a member.
--   i_queue, i_consumer, i_subconsumer  member
--   result                              1, or 0 when there is none
create or replace function pgque.touch_subconsumer(i_queue text, i_consumer text, i_subconsumer text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub pgque_internal.sub := pgque_internal.lock_found(
        pgque_internal.find_sub(i_queue, pgque_internal.member_name(i_consumer, i_subconsumer)));
begin
    if v_sub.sub_no is null or v_sub.sub_role <> 'coop_member' then
        return 0;
    end if;
    perform pgque_internal.touch(v_sub.sub_no);
    return 1;
end
$$;

-- Whether there may be something to do for a member: a batch of its own, one of a silent sibling, or a newer tick.
create or replace function pgque_internal.group_has_work(
    i_main pgque_internal.sub, i_member pgque_internal.sub, i_dead_interval interval)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select (pgque_internal.newest_tick(i_main.sub_queue)).tick_id > (pgque_internal.newest_cursor(i_main.sub_no)).cur_last_tick
        or (pgque_internal.newest_cursor(i_member.sub_no)).cur_next_tick is not null
        or exists (select
                   from pgque_internal.sub s
                   cross join lateral pgque_internal.newest_cursor(s.sub_no) c
                   where i_dead_interval is not null
                     and s.sub_id = i_member.sub_id and s.sub_role = 'coop_member' and s.sub_no <> i_member.sub_no
                     and c.cur_next_tick is not null
                     and (s.sub_lease = interval '0' or c.cur_active < clock_timestamp() - i_dead_interval))
$$;

-- Gives a member its next batch: its own open one; else that of a sibling that is silent; else the next of the
-- group.
--   i_dead_interval  after how long a sibling is taken for dead; NULL: never
--   i_max_rows       NULL: the group's next tick, or the one chosen by the three bounds of next_batch_custom;
--                    otherwise as many ticks as receive_batch would merge
--   result           registration of the member, its row locked; NULL when there is nothing to do
create or replace function pgque_internal.allocate(
    i_queue text, i_consumer text, i_subconsumer text, i_dead_interval interval, i_max_rows integer,
    i_min_lag interval, i_min_count integer, i_min_interval interval)
returns bigint
language plpgsql
as $$
declare
    v_name   text := pgque_internal.member_name(i_consumer, i_subconsumer);
    v_main   pgque_internal.sub;
    v_member pgque_internal.sub;
    v_cursor pgque_internal.cursor;
    v_work   pgque_internal.cursor;
    v_seen   bigint;
    v_end    bigint;
    v_merged record;
begin
    loop
        v_member := pgque_internal.find_sub(i_queue, v_name);
        if v_member.sub_no is null then
            perform pgque.register_subconsumer(i_queue, i_consumer, i_subconsumer, false);
            v_member := pgque_internal.find_sub(i_queue, v_name);
        end if;
        v_main := pgque_internal.find_sub(i_queue, i_consumer);
        if v_member.sub_id = v_main.sub_id and not pgque_internal.group_has_work(v_main, v_member, i_dead_interval) then
            return null;
        end if;
        v_main := pgque_internal.lock_sub(i_queue, i_consumer);
        v_member := pgque_internal.lock_found(v_member);
        -- Otherwise it was unregistered since.
        exit when v_member.sub_no is not null;
    end loop;
    if v_member.sub_role <> 'coop_member' or v_member.sub_id <> v_main.sub_id or v_main.sub_role <> 'coop_main' then
        raise exception 'consumer % on queue % is already registered incompatibly', v_name, i_queue;
    end if;
    v_cursor := pgque_internal.newest_cursor(v_member.sub_no);
    if v_cursor.cur_next_tick is not null then
        perform pgque_internal.append_cursor(v_member.sub_no, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick,
                                             coalesce(v_cursor.cur_batch, pgque_internal.next_batch_id()), v_cursor.cur_prefix);
        return v_member.sub_no;
    end if;

    while i_dead_interval is not null loop
        -- A sibling that is locked is at work.
        select c.* into v_work
        from pgque_internal.sub s
        cross join lateral pgque_internal.newest_cursor(s.sub_no) c
        where s.sub_id = v_member.sub_id and s.sub_role = 'coop_member' and s.sub_no <> v_member.sub_no
          and c.cur_next_tick is not null
          and (s.sub_lease = interval '0' or c.cur_active < clock_timestamp() - i_dead_interval)
        order by c.cur_active
        limit 1
        for no key update of s skip locked;
        exit when not found;
        -- It may have moved between the look and the lock.
        v_seen := v_work.cur_seq;
        v_work := pgque_internal.newest_cursor(v_work.cur_sub);
        if v_work.cur_seq = v_seen then
            perform pgque_internal.append_cursor(v_work.cur_sub, v_work.cur_seq, null, null, null, null);
            perform pgque_internal.append_cursor(v_member.sub_no, v_cursor.cur_seq, v_work.cur_last_tick, v_work.cur_next_tick,
                                                 pgque_internal.new_batch_id(v_member.sub_id, v_work.cur_batch),
                                                 v_work.cur_prefix);
            -- Nobody comes back for it.
            delete from pgque_internal.sub s where s.sub_no = v_work.cur_sub and s.sub_lease = interval '0';
            return v_member.sub_no;
        end if;
    end loop;

    v_work := pgque_internal.newest_cursor(v_main.sub_no);
    if i_max_rows is null then
        v_end := (pgque_internal.end_tick(pgque_internal.tick_at(v_main, v_work.cur_last_tick), i_min_lag, i_min_count,
                                          i_min_interval)).tick_id;
    else
        v_merged := pgque_internal.merged_end_tick(v_main, v_work.cur_last_tick, i_max_rows);
        v_end := v_merged.tick_id;
        if v_merged.no_events and v_end is not null then
            perform pgque_internal.append_cursor(v_main.sub_no, v_work.cur_seq, v_end, null, null, null);
            return null;
        end if;
    end if;
    if v_end is null then
        return null;
    end if;
    perform pgque_internal.append_cursor(v_main.sub_no, v_work.cur_seq, v_end, null, null, null);
    perform pgque_internal.append_cursor(v_member.sub_no, v_cursor.cur_seq, v_work.cur_last_tick, v_end,
                                         pgque_internal.next_batch_id(), null);
    return v_member.sub_no;
end
$$;

-- Opens a member's next batch, or finds the open one; registers the member if need be.
--   i_queue, i_consumer, i_subconsumer        member
--   i_min_lag, i_min_count, i_min_interval    as of next_batch_custom(queue, consumer, …)
--   i_dead_interval                           after how long without a sign of life a sibling's batch is taken over
--   result                                    batch_id NULL: nothing to do
create or replace function pgque.next_batch_custom(
    i_queue text, i_consumer text, i_subconsumer text, i_min_lag interval, i_min_count integer, i_min_interval interval,
    i_dead_interval interval default null, out batch_id bigint, out prev_tick_id bigint, out next_tick_id bigint)
returns record
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub    bigint := pgque_internal.allocate(i_queue, i_consumer, i_subconsumer, i_dead_interval, null, i_min_lag,
                                               i_min_count, i_min_interval);
    v_cursor pgque_internal.cursor;
begin
    if v_sub is not null then
        v_cursor := pgque_internal.newest_cursor(v_sub);
        batch_id := v_cursor.cur_batch;
        prev_tick_id := v_cursor.cur_last_tick;
        next_tick_id := v_cursor.cur_next_tick;
    end if;
end
$$;

-- Opens a member's next batch, of one tick, or finds the open one; registers the member if need be.
--   result  batch id; NULL: nothing to do
create or replace function pgque.next_batch(
    i_queue text, i_consumer text, i_subconsumer text, i_dead_interval interval default null)
returns bigint
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select b.batch_id
    from pgque.next_batch_custom(i_queue, i_consumer, i_subconsumer, null::interval, null::integer, null::interval,
                                 i_dead_interval) b
$$;

-- Receives as a member of a group from its next tick; registers the member if need be.
--   i_max_return     most events to return, at least 1; the ack finishes the whole batch all the same
--   i_dead_interval  after how long without a sign of life a sibling's batch is taken over; NULL: never
--   result           events in the order of their ids; a tick without events is finished at once
create or replace function pgque.receive_coop(
    i_queue text, i_consumer text, i_subconsumer text, i_max_return integer default 100, i_dead_interval interval default null)
returns setof pgque.message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id bigint;
begin
    if i_max_return < 1 then
        raise exception 'max_return must be >= 1, not %', i_max_return;
    end if;
    v_id := pgque.next_batch(i_queue, i_consumer, i_subconsumer, i_dead_interval);
    if v_id is null then
        return;
    end if;
    return query execute
        format('select ev_id, %s::bigint, ev_type, ev_data, ev_retry, ev_time, ev_extra1, ev_extra2, ev_extra3, ev_extra4'
               ' from (%s) e order by ev_id limit $1',
               v_id, pgque_internal.batch_query(pgque_internal.find_batch(v_id, false), null))
        using i_max_return;
    if not found then
        perform pgque.finish_batch(v_id);
    end if;
end
$$;

-- Receives as a member of a group; otherwise like receive_batch, and settled like one.
--   i_dead_interval  as of receive_coop
create or replace function pgque.receive_coop_batch(
    i_queue text, i_consumer text, i_subconsumer text, i_max_rows integer, i_max_bytes bigint, i_dead_interval interval)
returns table (msg_id bigint, batch_id bigint, type text, payload text, retry_count int4, created_at timestamptz,
               extra1 text, extra2 text, extra3 text, extra4 text, more boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_no     bigint;
    v_sub    pgque_internal.sub;
    v_cursor pgque_internal.cursor;
    v_page   pgque_internal.page;
begin
    perform pgque_internal.check_page(i_max_rows, i_max_bytes);
    loop
        v_no := pgque_internal.allocate(i_queue, i_consumer, i_subconsumer, i_dead_interval, i_max_rows, null, null, null);
        if v_no is null then
            return;
        end if;
        select * into v_sub from pgque_internal.sub s where s.sub_no = v_no;
        v_cursor := pgque_internal.newest_cursor(v_no);
        v_page := pgque_internal.first_page(
            pgque_internal.require_ticks(pgque_internal.batch_window(v_sub, v_cursor)), i_max_rows, i_max_bytes);
        if v_page.events is not null then
            return query select * from pgque_internal.page_rows(v_page);
            return;
        elsif v_page.query is not null then
            return query execute v_page.query using i_max_rows, i_max_bytes;
            return;
        end if;
        perform pgque_internal.close_batch(v_sub, v_cursor);
    end loop;
end
$$;

-- Takes a member out of its group.
--   i_sub             registration of the member
--   i_batch_handling  0: an open batch is an error; 1: all its events are given back, due in a minute
--   result            1
create or replace function pgque_internal.remove_member(i_queue text, i_sub bigint, i_batch_handling integer) returns integer
language plpgsql
as $$
declare
    v_sub    pgque_internal.sub;
    v_cursor pgque_internal.cursor;
    v_batch  pgque_internal.batch;
    v_ids    bigint[];
begin
    -- The main row first, as everybody who gives out batches does.
    perform from pgque_internal.sub m
    where m.sub_role = 'coop_main'
      and m.sub_id = (select s.sub_id from pgque_internal.sub s where s.sub_no = i_sub)
    for no key update;
    select * into v_sub from pgque_internal.sub s where s.sub_no = i_sub for update;
    if not found then
        return 0;
    end if;
    v_cursor := pgque_internal.newest_cursor(i_sub);
    if v_cursor.cur_next_tick is not null then
        if i_batch_handling = 0 then
            raise exception 'cooperative subconsumer has an open batch: %', v_cursor.cur_batch
                using hint = 'Finish it, or unregister with i_batch_handling => 1.';
        end if;
        if v_cursor.cur_batch is null then
            perform pgque_internal.append_cursor(i_sub, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick,
                                                 pgque_internal.next_batch_id(), v_cursor.cur_prefix);
        end if;
        v_batch := pgque_internal.find_batch((pgque_internal.newest_cursor(i_sub)).cur_batch, false);
        execute format('select array_agg(ev_id) from (%s) e', pgque_internal.batch_query(v_batch, null)) into v_ids;
        if v_ids is not null then
            perform pgque_internal.give_back(
                v_batch, v_ids, array_fill(now() + interval '60 seconds', array[cardinality(v_ids)]),
                array_fill('subconsumer unregistered'::text, array[cardinality(v_ids)]),
                array_fill(false, array[cardinality(v_ids)]), v_batch.max_retries);
        end if;
    end if;
    delete from pgque_internal.sub s where s.sub_no = i_sub;
    if not pgque_internal.has_members(v_sub.sub_id) then
        update pgque_internal.sub s set sub_role = 'normal' where s.sub_id = v_sub.sub_id and s.sub_role = 'coop_main';
    end if;
    return 1;
end
$$;

-- Ends a membership; with its last member a group becomes a normal consumer again, at its position.
--   i_queue, i_consumer, i_subconsumer  member
--   i_batch_handling                    0: an open batch is an error; 1: its events are given back, due in a minute,
--                                       or become dead letters after the queue's max_retries
--   result                              1, or 0 when there was none
create or replace function pgque.unregister_subconsumer(
    i_queue text, i_consumer text, i_subconsumer text, i_batch_handling integer default 0)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub pgque_internal.sub := pgque_internal.find_sub(i_queue, pgque_internal.member_name(i_consumer, i_subconsumer));
begin
    if v_sub.sub_no is null or v_sub.sub_role <> 'coop_member' then
        return 0;
    end if;
    if i_batch_handling is null or i_batch_handling not in (0, 1) then
        raise exception 'unsupported batch_handling value: %', coalesce(i_batch_handling::text, 'NULL')
            using hint = '0 refuses an open batch, 1 gives its events back.';
    end if;
    return pgque_internal.remove_member(i_queue, v_sub.sub_no, i_batch_handling);
end
$$;

-- Same as unregister_subconsumer.
create or replace function pgque.unsubscribe_subconsumer(
    i_queue text, i_consumer text, i_subconsumer text, i_batch_handling integer default 0)
returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgque.unregister_subconsumer(i_queue, i_consumer, i_subconsumer, i_batch_handling)
$$;

-- ---------------------------------------------------------------------------------------------------
-- Members that belong to an instance of an application
-- ---------------------------------------------------------------------------------------------------

-- Registers a member that belongs to an instance: when that is dead, maint() takes the member out of its group. A
-- normal consumer of the group's name becomes the group and keeps its position, also within a batch that is settled
-- in part, or was left by a dead instance.
--   i_queue, i_consumer, i_subconsumer  member
--   i_instance                          instance, which must have beaten within the lease's time
--   i_lease                             after how long without a heartbeat it is taken for dead
--   result                              1 when new, 0 when it was registered
create or replace function pgque.join_group(
    i_queue text, i_consumer text, i_subconsumer text, i_instance text, i_lease interval)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_name   text := pgque_internal.member_name(i_consumer, i_subconsumer);
    v_main   pgque_internal.sub;
    v_member pgque_internal.sub;
    v_open   pgque_internal.cursor;
    v_new    integer;
begin
    perform pgque_internal.require_heartbeat(i_instance, i_lease);
    v_main := pgque_internal.lock_found(pgque_internal.find_sub(i_queue, i_consumer));
    if v_main.sub_role = 'normal' and v_main.sub_part is null then
        v_open := pgque_internal.newest_cursor(v_main.sub_no);
        perform pgque_internal.require_unused(v_main, v_open, i_queue, i_consumer);
        update pgque_internal.sub s set sub_instance = null, sub_lease = null where s.sub_no = v_main.sub_no;
        if v_open.cur_next_tick is not null then
            perform pgque_internal.append_cursor(v_main.sub_no, v_open.cur_seq, v_open.cur_next_tick, null, null, null);
        end if;
    end if;
    v_new := pgque.register_subconsumer(i_queue, i_consumer, i_subconsumer, true);
    v_member := pgque_internal.lock_sub(i_queue, v_name);
    update pgque_internal.sub s set sub_instance = i_instance, sub_lease = i_lease where s.sub_no = v_member.sub_no;
    if v_open.cur_next_tick is not null then
        perform pgque_internal.append_cursor(
            v_member.sub_no, (pgque_internal.newest_cursor(v_member.sub_no)).cur_seq, v_open.cur_last_tick,
            v_open.cur_next_tick, pgque_internal.new_batch_id(v_member.sub_id, v_open.cur_batch), v_open.cur_prefix);
    end if;
    return v_new;
end
$$;

-- Refuses to change the kind of a consumer that somebody is at work on; its row is locked.
create or replace function pgque_internal.require_unused(
    i_sub pgque_internal.sub, i_cursor pgque_internal.cursor, i_queue text, i_consumer text)
returns void
language plpgsql
as $$
begin
    if pgque_internal.lease_is_alive(i_sub) or i_sub.sub_instance is null and i_cursor.cur_batch is not null then
        raise exception 'cannot convert active normal consumer % on queue %', i_consumer, i_queue
            using hint = 'Finish its batch, and release its lease, first.';
    end if;
end
$$;

-- Ends a membership at once: what is left of an open batch goes to the next member that asks, and is not counted as
-- failed.
--   i_queue, i_consumer, i_subconsumer  member
--   result                              1, or 0 when there was none
create or replace function pgque.leave_group(i_queue text, i_consumer text, i_subconsumer text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub pgque_internal.sub := pgque_internal.find_sub(i_queue, pgque_internal.member_name(i_consumer, i_subconsumer));
begin
    if v_sub.sub_no is null or v_sub.sub_role <> 'coop_member' then
        return 0;
    end if;
    perform pgque_internal.let_go(i_queue, v_sub);
    perform pg_notify('pgque_' || i_queue, 'lease ' || i_consumer);
    return 1;
end
$$;

-- Removes a member, or leaves its batch to the others.
create or replace function pgque_internal.let_go(i_queue text, i_sub pgque_internal.sub) returns void
language plpgsql
as $$
declare
    v_sub    pgque_internal.sub;
    v_cursor pgque_internal.cursor;
begin
    -- The main row first, as everybody who gives out batches does.
    perform from pgque_internal.sub m where m.sub_role = 'coop_main' and m.sub_id = i_sub.sub_id for no key update;
    v_sub := pgque_internal.lock_found(i_sub);
    v_cursor := pgque_internal.newest_cursor(v_sub.sub_no);
    if v_cursor.cur_next_tick is null then
        perform pgque_internal.remove_member(i_queue, v_sub.sub_no, 0);
        return;
    end if;
    update pgque_internal.sub s set sub_instance = null, sub_lease = interval '0' where s.sub_no = v_sub.sub_no;
    -- Without its id, the batch can't be settled by who let it go.
    perform pgque_internal.append_cursor(v_sub.sub_no, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick, null,
                                         v_cursor.cur_prefix);
end
$$;

-- Takes the members of dead instances out of their groups.
--   result  number of members
create or replace function pgque_internal.drop_dead_members() returns integer
language plpgsql
as $$
declare
    v_dead  record;
    v_count integer := 0;
begin
    for v_dead in
        select s as sub, q.queue_name, m.co_name
        from pgque_internal.sub s
        join pgque_internal.instance i on i.ins_name = s.sub_instance
        join pgque.queue q on q.queue_id = s.sub_queue
        join pgque_internal.sub g on g.sub_id = s.sub_id and g.sub_role = 'coop_main'
        join pgque.consumer m on m.co_id = g.sub_consumer
        where s.sub_role = 'coop_member' and i.ins_heartbeat <= clock_timestamp() - s.sub_lease
    loop
        perform pgque_internal.let_go(v_dead.queue_name, v_dead.sub);
        perform pg_notify('pgque_' || v_dead.queue_name, 'lease ' || v_dead.co_name);
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

-- Makes a group a normal consumer again, at its position; what its members had not finished comes again at once as a
-- redelivery, which is not counted as failed.
--   i_queue, i_consumer  group, without a member that is at work
--   result               number of members that were removed
create or replace function pgque.dissolve_group(i_queue text, i_consumer text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_main   pgque_internal.sub := pgque_internal.lock_sub(i_queue, i_consumer);
    v_member pgque_internal.sub;
    v_cursor pgque_internal.cursor;
    v_batch  pgque_internal.batch;
    v_ids    bigint[];
    v_count  integer := 0;
begin
    if v_main.sub_role <> 'coop_main' then
        return 0;
    end if;
    for v_member in
        select * from pgque_internal.sub s where s.sub_id = v_main.sub_id and s.sub_role = 'coop_member' for update
    loop
        if pgque_internal.lease_is_alive(v_member) or v_member.sub_instance is null and v_member.sub_lease is null then
            raise exception 'cooperative consumer % on % has members at work', i_consumer, i_queue
                using hint = 'Stop the instances that receive for it, or unregister its members.';
        end if;
        v_cursor := pgque_internal.newest_cursor(v_member.sub_no);
        if v_cursor.cur_next_tick is not null then
            perform pgque_internal.append_cursor(v_member.sub_no, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick,
                                                 pgque_internal.new_batch_id(v_member.sub_id, v_cursor.cur_batch), v_cursor.cur_prefix);
            v_batch := pgque_internal.find_batch((pgque_internal.newest_cursor(v_member.sub_no)).cur_batch, false);
            execute format('select array_agg(ev_id) from (%s) e', pgque_internal.batch_query(v_batch, null)) into v_ids;
            if v_ids is not null then
                perform pgque_internal.give_back(
                    v_batch, v_ids, array_fill(now(), array[cardinality(v_ids)]),
                    array_fill(null::text, array[cardinality(v_ids)]), array_fill(false, array[cardinality(v_ids)]), null::int4);
                update pgque.retry_queue r set ev_retry = nullif(r.ev_retry - 1, 0)
                where r.ev_owner = v_member.sub_id and r.ev_batch = v_batch.batch_id and r.ev_id = any (v_ids);
            end if;
        end if;
        delete from pgque_internal.sub s where s.sub_no = v_member.sub_no;
        v_count := v_count + 1;
    end loop;
    update pgque_internal.sub s set sub_role = 'normal' where s.sub_no = v_main.sub_no;
    return v_count;
end
$$;
