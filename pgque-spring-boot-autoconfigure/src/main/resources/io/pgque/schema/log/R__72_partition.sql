-- Partitioned consumers: the keys of a queue are spread over n slots, each slot is read by one worker at a time.
--
-- What this topic guarantees
--   * A key (extra1) always belongs to the same of n slots; its events are delivered in the order of their ids
--     inside a batch, to the holder of the slot's lease. A redelivered event comes later, but to its slot.
--   * Whoever lost a lease to another worker settles nothing any more.
--   * Changing the number of slots loses no event and reorders no key: the present slots read up to one tick, then
--     the new ones go on from there.

-- Name of a slot's subscription.
create or replace function pgque_internal.slot_name(i_consumer text, i_slot int4, i_n int4) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select i_consumer || '#' || i_slot || '/' || i_n
$$;

-- A partitioned consumer of a queue, its row locked, after checking that it has the slots the caller thinks.
create or replace function pgque_internal.check_partition(i_queue text, i_consumer text, i_slot integer, i_n integer)
returns pgque.partition_consumer
language plpgsql
as $$
declare
    v_partition pgque.partition_consumer;
begin
    if i_queue is null or i_consumer is null or i_slot is null then
        raise exception 'queue, consumer and slot are needed, not %, % and %', coalesce(i_queue, 'NULL'),
            coalesce(i_consumer, 'NULL'), coalesce(i_slot::text, 'NULL');
    end if;
    select p.* into v_partition
    from pgque.partition_consumer p
    join pgque.queue q on q.queue_id = p.queue_id
    where q.queue_name = i_queue and p.co_name = i_consumer
    for key share of p;
    if not found then
        raise exception 'consumer % on % is not a partitioned consumer', i_consumer, i_queue
            using hint = 'Subscribe its slots first: pgque.subscribe_slots(queue, consumer, n).';
    end if;
    if i_n <> v_partition.n then
        raise exception 'partitioned consumer % on % has n=%, not n=%', i_consumer, i_queue, v_partition.n, i_n;
    end if;
    perform pgque_internal.check_slot(i_slot, v_partition.n);
    return v_partition;
end
$$;

-- Refuses a slot that n slots do not have.
create or replace function pgque_internal.check_slot(i_slot integer, i_n integer) returns void
language plpgsql immutable
as $$
begin
    if i_slot not between 0 and i_n - 1 then
        raise exception 'slot % is out of range: with n=% there are slots 0 to %', i_slot, i_n, i_n - 1;
    end if;
end
$$;

-- Subscribes one slot at a tick.
create or replace function pgque_internal.add_slot(
    i_queue text, i_queue_id int4, i_consumer text, i_slot integer, i_n integer, i_tick bigint)
returns void
language plpgsql
as $$
begin
    perform pgque.register_consumer_at(i_queue, pgque_internal.slot_name(i_consumer, i_slot, i_n), i_tick);
    update pgque_internal.sub s set sub_part = i_slot, sub_parts = i_n
    where s.sub_no = (pgque_internal.find_sub(i_queue, pgque_internal.slot_name(i_consumer, i_slot, i_n))).sub_no
      and s.sub_part is null;
    insert into pgque.partition_slot (queue_id, co_name, slot) values (i_queue_id, i_consumer, i_slot)
    on conflict on constraint partition_slot_pkey do nothing;
end
$$;

-- Makes a consumer partitioned, or finds it so with the same number of slots.
--   result  the consumer, its row locked against a change of the number of slots
create or replace function pgque_internal.pin_partition(i_queue text, i_consumer text, i_n integer) returns pgque.partition_consumer
language plpgsql
as $$
declare
    v_queue_id  int4;
    v_partition pgque.partition_consumer;
begin
    if i_queue is null or i_consumer is null or i_n is null or i_n < 1 then
        raise exception 'queue, consumer and n >= 1 are needed, not %, % and n=%', coalesce(i_queue, 'NULL'),
            coalesce(i_consumer, 'NULL'), coalesce(i_n::text, 'NULL');
    end if;
    if position('#' in i_consumer) > 0 then
        raise exception 'consumer name must not contain #: %', i_consumer;
    end if;
    select q.queue_id into v_queue_id from pgque.queue q where q.queue_name = i_queue for key share;
    if not found then
        raise exception 'queue not found: %', i_queue using hint = 'Create it with pgque.create_queue.';
    end if;
    if (pgque_internal.find_sub(i_queue, i_consumer)).sub_no is not null then
        raise exception 'consumer % on % is already registered, and not partitioned', i_consumer, i_queue
            using hint = 'Change its kind with pgque.change_partitions(queue, consumer, n).';
    end if;
    insert into pgque.partition_consumer (queue_id, co_name, n) values (v_queue_id, i_consumer, i_n)
    on conflict on constraint partition_consumer_pkey do nothing;
    select * into v_partition from pgque.partition_consumer p
    where p.queue_id = v_queue_id and p.co_name = i_consumer
    for no key update;
    if v_partition.n <> i_n then
        raise exception 'partitioned consumer % on % has n=%, not n=%', i_consumer, i_queue, v_partition.n, i_n
            using hint = 'Change it with pgque.change_partitions(queue, consumer, n).';
    end if;
    return v_partition;
end
$$;

-- Subscribes one slot at the newest tick; the first one fixes the number of slots. A slot that is subscribed later
-- misses what was sent before: subscribe all at once with subscribe_slots.
--   i_queue, i_consumer  consumer; i_slot: slot from 0 to i_n - 1; i_n: number of slots
create or replace function pgque.subscribe_slot(i_queue text, i_consumer text, i_slot integer, i_n integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_partition pgque.partition_consumer := pgque_internal.pin_partition(i_queue, i_consumer, i_n);
begin
    if i_slot is null then
        raise exception 'queue, consumer and slot are needed, not %, % and NULL', i_queue, i_consumer;
    end if;
    perform pgque_internal.check_slot(i_slot, i_n);
    perform pgque_internal.add_slot(i_queue, v_partition.queue_id, i_consumer, i_slot, i_n, null::bigint);
end
$$;

-- Subscribes all slots of a consumer, those that are missing at the same tick: that of the slowest slot, or the
-- newest if there is none.
--   i_queue, i_consumer  consumer; i_n: number of slots
--   result               number of slots newly subscribed
create or replace function pgque.subscribe_slots(i_queue text, i_consumer text, i_n integer) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_partition pgque.partition_consumer := pgque_internal.pin_partition(i_queue, i_consumer, i_n);
    v_tick      bigint;
    v_slot      integer;
    v_count     integer := 0;
begin
    select min(s.sub_last_tick) into v_tick
    from pgque.subscription s
    join pgque.consumer c on c.co_id = s.sub_consumer
    where s.sub_queue = v_partition.queue_id
      and c.co_name = any (select pgque_internal.slot_name(i_consumer, k, i_n) from generate_series(0, i_n - 1) k);
    v_tick := coalesce(v_tick, (pgque_internal.newest_tick(v_partition.queue_id)).tick_id);
    for v_slot in
        select k from generate_series(0, i_n - 1) k
        where not exists (select from pgque.partition_slot p
                          where p.queue_id = v_partition.queue_id and p.co_name = i_consumer and p.slot = k)
    loop
        perform pgque_internal.add_slot(i_queue, v_partition.queue_id, i_consumer, v_slot, i_n, v_tick);
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

-- Ends the subscription of a slot; with the last one the consumer is no longer partitioned.
create or replace function pgque.unsubscribe_slot(i_queue text, i_consumer text, i_slot integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_partition pgque.partition_consumer;
begin
    select p.* into v_partition
    from pgque.partition_consumer p
    join pgque.queue q on q.queue_id = p.queue_id
    where q.queue_name = i_queue and p.co_name = i_consumer
    for update of p;
    if not found then
        return;
    end if;
    perform pgque_internal.check_slot(i_slot, v_partition.n);
    perform pgque.unregister_consumer(i_queue, pgque_internal.slot_name(i_consumer, i_slot, v_partition.n));
    delete from pgque.partition_slot p
    where p.queue_id = v_partition.queue_id and p.co_name = i_consumer and p.slot = i_slot;
    if not exists (select from pgque.partition_slot p where p.queue_id = v_partition.queue_id and p.co_name = i_consumer) then
        delete from pgque.partition_consumer p where p.queue_id = v_partition.queue_id and p.co_name = i_consumer;
    end if;
end
$$;

-- Takes or renews the lease of a slot.
--   i_worker  worker that claims it
--   i_ttl     time until another may take it, unless renewed by working; at least a second
--   result    epoch, one higher each time the slot changes hands; NULL while another worker, or the lease of an
--             instance, holds it
create or replace function pgque.claim_slot(
    i_queue text, i_consumer text, i_slot integer, i_worker text, i_ttl interval default '30 seconds')
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_partition pgque.partition_consumer;
    v_epoch     bigint;
begin
    if coalesce(i_worker, '') = '' then
        raise exception 'a worker needs a name';
    end if;
    if i_ttl is null or i_ttl < interval '1 second' then
        raise exception 'ttl must be at least 1 second, not %', coalesce(i_ttl::text, 'NULL');
    end if;
    v_partition := pgque_internal.check_partition(i_queue, i_consumer, i_slot, null);
    if pgque_internal.lease_is_alive(
           pgque_internal.find_sub(i_queue, pgque_internal.slot_name(i_consumer, i_slot, v_partition.n))) then
        return null;
    end if;
    update pgque.partition_slot p
    set epoch = p.epoch + (p.lease_owner is distinct from i_worker)::int4,
        lease_owner = i_worker,
        lease_until = clock_timestamp() + i_ttl,
        lease_ttl = i_ttl
    where p.queue_id = v_partition.queue_id and p.co_name = i_consumer and p.slot = i_slot
      and (p.lease_owner is null or p.lease_owner = i_worker or p.lease_until <= clock_timestamp())
    returning p.epoch into v_epoch;
    if not found and not exists (select from pgque.partition_slot p
                                 where p.queue_id = v_partition.queue_id and p.co_name = i_consumer and p.slot = i_slot) then
        raise exception 'slot % of consumer % on % is not subscribed', i_slot, i_consumer, i_queue;
    end if;
    return v_epoch;
end
$$;

-- Gives the lease of a slot up.
--   result  whether the worker held it
create or replace function pgque.release_slot(i_queue text, i_consumer text, i_slot integer, i_worker text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from pgque.partition_consumer p
    join pgque.queue q on q.queue_id = p.queue_id
    where q.queue_name = i_queue and p.co_name = i_consumer
    for key share of p;
    update pgque.partition_slot p
    set lease_owner = null, lease_until = null
    from pgque.queue q
    where q.queue_name = i_queue and p.queue_id = q.queue_id and p.co_name = i_consumer and p.slot = i_slot
      and p.lease_owner = i_worker;
    return found;
end
$$;

-- Lets the holder of a slot's lease pass, and renews the lease.
--   result  registration of the slot, its row locked
create or replace function pgque_internal.guard_slot(i_queue text, i_consumer text, i_slot integer, i_n integer, i_worker text)
returns pgque_internal.sub
language plpgsql
as $$
declare
    v_partition pgque.partition_consumer;
    v_slot      pgque.partition_slot;
    v_sub       pgque_internal.sub;
begin
    if i_n is null or i_worker is null then
        raise exception 'n and worker are needed, not n=% and %', coalesce(i_n::text, 'NULL'), coalesce(i_worker, 'NULL');
    end if;
    v_partition := pgque_internal.check_partition(i_queue, i_consumer, i_slot, i_n);
    select * into v_slot from pgque.partition_slot p
    where p.queue_id = v_partition.queue_id and p.co_name = i_consumer and p.slot = i_slot
    for no key update;
    if not found then
        raise exception 'slot % of consumer % on % is not subscribed', i_slot, i_consumer, i_queue;
    end if;
    if v_slot.lease_owner is null then
        raise exception 'slot % of consumer % on % is not leased', i_slot, i_consumer, i_queue
            using hint = 'Claim it first: pgque.claim_slot(queue, consumer, slot, worker).';
    end if;
    if v_slot.lease_owner <> i_worker then
        raise exception 'slot % of consumer % on % is held by %: worker % is fenced', i_slot, i_consumer, i_queue,
            v_slot.lease_owner, i_worker;
    end if;
    update pgque.partition_slot p set lease_until = clock_timestamp() + p.lease_ttl
    where p.queue_id = v_partition.queue_id and p.co_name = i_consumer and p.slot = i_slot;
    v_sub := pgque_internal.lock_sub(i_queue, pgque_internal.slot_name(i_consumer, i_slot, i_n));
    if pgque_internal.lease_is_alive(v_sub) then
        raise exception 'slot % of consumer % on % is held by instance %: worker % is fenced', i_slot, i_consumer, i_queue,
            v_sub.sub_instance, i_worker;
    end if;
    if v_sub.sub_instance is not null then
        perform pgque_internal.hand_over(v_sub.sub_no, null::text, null::interval);
    end if;
    return v_sub;
end
$$;

-- Whether a worker holds a subscription by a claim that has not run out.
create or replace function pgque_internal.slot_is_claimed(i_sub pgque_internal.sub) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select i_sub.sub_part is not null
           and exists (select
                       from pgque.partition_slot p
                       join pgque.consumer c on c.co_id = i_sub.sub_consumer and split_part(c.co_name, '#', 1) = p.co_name
                       where p.queue_id = i_sub.sub_queue and p.slot = i_sub.sub_part
                         and p.lease_owner is not null and p.lease_until > clock_timestamp())
$$;

-- Tick that a slot must not read beyond, since its consumer changes to another number of slots; NULL: none. The
-- consumer's row stays locked against such a change.
create or replace function pgque_internal.slots_last_tick(i_sub pgque_internal.sub) returns bigint
language plpgsql
as $$
declare
    v_tick bigint;
begin
    select p.last_tick into v_tick
    from pgque.partition_consumer p
    join pgque.consumer c on c.co_id = i_sub.sub_consumer and split_part(c.co_name, '#', 1) = p.co_name
    where p.queue_id = i_sub.sub_queue
    for key share of p;
    return v_tick;
end
$$;

-- Opens the next batch of a slot, of one tick, or finds the open one. Ticks without events of the slot are passed
-- over, however many.
--   i_sub        registration, its row locked
--   i_last_tick  tick not to go beyond; NULL: none
--   result       batch id; NULL: nothing to do
create or replace function pgque_internal.open_slot(i_sub pgque_internal.sub, i_last_tick bigint) returns bigint
language plpgsql
as $$
declare
    v_cursor pgque_internal.cursor := pgque_internal.newest_cursor(i_sub.sub_no);
    v_last   bigint := v_cursor.cur_last_tick;
    v_next   bigint := v_cursor.cur_next_tick;
    v_any    boolean;
begin
    if v_cursor.cur_batch is not null then
        return v_cursor.cur_batch;
    end if;
    v_any := v_next is not null and pgque_internal.any_events(i_sub, v_last, v_next, v_cursor.cur_prefix);
    if not v_any then
        v_cursor.cur_prefix := null;
        v_last := coalesce(v_next, v_last);
        select t.quiet, t.busy into v_last, v_next from pgque_internal.first_tick_with_events(i_sub, v_last, i_last_tick) t;
        if v_next is null then
            if v_last <> v_cursor.cur_last_tick then
                perform pgque_internal.append_cursor(i_sub.sub_no, v_cursor.cur_seq, v_last, null, null, null);
            end if;
            return null;
        end if;
    end if;
    v_cursor.cur_batch := pgque_internal.next_batch_id();
    perform pgque_internal.append_cursor(i_sub.sub_no, v_cursor.cur_seq, v_last, v_next, v_cursor.cur_batch,
                                         v_cursor.cur_prefix);
    return v_cursor.cur_batch;
end
$$;

-- Finds the next tick that has events of a slot, in leaps that double and then halve, so that no event is looked
-- at more than twice.
--   i_after      tick to start after
--   i_last_tick  newest to look at; NULL: the newest there is
--   quiet        last tick before it; without a busy one the last that was looked at
--   busy         tick that has events; NULL: none
create or replace function pgque_internal.first_tick_with_events(
    i_sub pgque_internal.sub, i_after bigint, i_last_tick bigint, out quiet bigint, out busy bigint)
language plpgsql
as $$
declare
    v_max  constant bigint := 9223372036854775807;
    v_leap bigint := 1;
    v_tick bigint;
begin
    quiet := i_after;
    loop
        select t.tick_id into v_tick from pgque.tick t
        where t.tick_queue = i_sub.sub_queue and t.tick_id > quiet and t.tick_id <= coalesce(busy, i_last_tick, v_max)
        order by t.tick_id
        offset v_leap - 1 limit 1;
        if not found and busy is null then
            select t.tick_id into v_tick from pgque.tick t
            where t.tick_queue = i_sub.sub_queue and t.tick_id > quiet and t.tick_id <= coalesce(i_last_tick, v_max)
            order by t.tick_id desc
            limit 1;
            exit when not found;
        end if;
        if v_tick = busy or v_tick is null then
            exit when v_leap = 1;
        elsif pgque_internal.any_events(i_sub, quiet, v_tick, null) then
            busy := v_tick;
        else
            quiet := v_tick;
        end if;
        v_leap := case when busy is null then v_leap * 2 else greatest(v_leap / 2, 1) end;
    end loop;
end
$$;

-- Whether a consumer has events between two ticks, with ids behind i_prefix if that is not NULL.
create or replace function pgque_internal.any_events(i_sub pgque_internal.sub, i_from bigint, i_to bigint, i_prefix bigint)
returns boolean
language plpgsql
as $$
declare
    v_batch pgque_internal.batch;
    v_any   boolean;
begin
    v_batch.sub_id := i_sub.sub_id;
    v_batch.part := i_sub.sub_part;
    v_batch.parts := i_sub.sub_parts;
    v_batch.prefix := i_prefix;
    v_batch.queue_prefix := (select q.queue_data_pfx from pgque.queue q where q.queue_id = i_sub.sub_queue);
    v_batch.prev_snapshot := (pgque_internal.tick_at(i_sub, i_from)).tick_snapshot;
    v_batch.next_snapshot := (pgque_internal.tick_at(i_sub, i_to)).tick_snapshot;
    v_batch.slots := (select bit_or(t.tick_event_slots) from pgque.tick t
                      where t.tick_queue = i_sub.sub_queue and t.tick_id > i_from and t.tick_id <= i_to);
    execute format('select exists (%s)', pgque_internal.batch_query(v_batch, null)) into v_any;
    return v_any;
end
$$;

-- Receives as the holder of a slot's lease, and renews the lease.
--   i_n       number of slots; i_worker: holder
--   i_max     most events to return, at least 1; the ack finishes the whole batch all the same
--   result    events of the slot's keys in the order of their ids; ticks without any are passed over
create or replace function pgque.receive_partitioned(
    i_queue text, i_consumer text, i_slot integer, i_n integer, i_worker text, i_max integer default 100)
returns setof pgque.message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub pgque_internal.sub;
    v_id  bigint;
begin
    if i_max is null or i_max < 1 then
        raise exception 'max must be >= 1, not %', coalesce(i_max::text, 'NULL');
    end if;
    v_sub := pgque_internal.guard_slot(i_queue, i_consumer, i_slot, i_n, i_worker);
    v_id := pgque_internal.open_slot(v_sub, (select p.last_tick from pgque.partition_consumer p
                                             where p.queue_id = v_sub.sub_queue and p.co_name = i_consumer));
    if v_id is null then
        return;
    end if;
    return query execute
        format('select ev_id, %s::bigint, ev_type, ev_data, ev_retry, ev_time, ev_extra1, ev_extra2, ev_extra3, ev_extra4'
               ' from (%s) e order by ev_id limit $1',
               v_id, pgque_internal.batch_query(pgque_internal.find_batch(v_id, false), null))
        using i_max;
end
$$;

-- Finishes a slot's open batch; i_batch_id NULL: whichever it is.
create or replace function pgque_internal.ack_slot(
    i_queue text, i_consumer text, i_slot integer, i_n integer, i_worker text, i_batch_id bigint)
returns integer
language plpgsql
as $$
declare
    v_sub    pgque_internal.sub := pgque_internal.guard_slot(i_queue, i_consumer, i_slot, i_n, i_worker);
    v_cursor pgque_internal.cursor := pgque_internal.newest_cursor(v_sub.sub_no);
begin
    if v_cursor.cur_batch is null or v_cursor.cur_batch <> i_batch_id then
        return 0;
    end if;
    perform pgque_internal.close_batch(v_sub, v_cursor);
    return 1;
end
$$;

-- Finishes the open batch of a slot, whichever it is, and renews the lease.
--   result  1, or 0 when no batch is open
create or replace function pgque.ack_partitioned(i_queue text, i_consumer text, i_slot integer, i_n integer, i_worker text)
returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgque_internal.ack_slot(i_queue, i_consumer, i_slot, i_n, i_worker, null::bigint)
$$;

-- Finishes the open batch of a slot if it is the given one, and renews the lease.
--   i_batch_id  batch that was handled
--   result      1, or 0 when another batch is open, or none: a late or repeated ack finishes nothing
create or replace function pgque.ack_partitioned(
    i_queue text, i_consumer text, i_slot integer, i_n integer, i_worker text, i_batch_id bigint)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if i_batch_id is null then
        return 0;
    end if;
    return pgque_internal.ack_slot(i_queue, i_consumer, i_slot, i_n, i_worker, i_batch_id);
end
$$;

-- Gives one message of a slot's open batch back, and renews the lease; otherwise like nack.
--   result  1
create or replace function pgque.nack_partitioned(
    i_queue text, i_consumer text, i_slot integer, i_n integer, i_worker text, i_msg pgque.message,
    i_retry_after interval default '60 seconds', i_reason text default null)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub   pgque_internal.sub := pgque_internal.guard_slot(i_queue, i_consumer, i_slot, i_n, i_worker);
    v_batch pgque_internal.batch;
begin
    v_batch := pgque_internal.find_batch((pgque_internal.newest_cursor(v_sub.sub_no)).cur_batch, false);
    if v_batch.batch_id is null then
        raise exception 'batch not found: slot % of consumer % on % has none open', i_slot, i_consumer, i_queue;
    end if;
    perform pgque_internal.nack_message(v_batch, i_msg.msg_id, i_retry_after, i_reason);
    return 1;
end
$$;

-- ---------------------------------------------------------------------------------------------------
-- Changing the number of slots, or a consumer's kind
-- ---------------------------------------------------------------------------------------------------

-- Changes a consumer to n slots, from a plain one or from another number, or to a plain one; its position is kept.
-- Plain consumers change at once. Slots first read up to the present tick, and give back what they retry later;
-- the change is completed by the next call of this function, or of maint(), after that.
--   i_queue, i_consumer  consumer without an open batch, if it is a plain one
--   i_n                  number of slots; 0: plain
--   result               whether the change is complete
create or replace function pgque.change_partitions(i_queue text, i_consumer text, i_n integer) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue     pgque.queue;
    v_partition pgque.partition_consumer;
begin
    if i_n is null or i_n < 0 then
        raise exception 'number of slots must be >= 0, not n=%', coalesce(i_n::text, 'NULL');
    end if;
    perform pgque_internal.require_read_committed('change_partitions');
    select * into v_queue from pgque.queue q where q.queue_name = i_queue for no key update;
    if not found then
        raise exception 'queue not found: %', i_queue;
    end if;
    select * into v_partition from pgque.partition_consumer p
    where p.queue_id = v_queue.queue_id and p.co_name = i_consumer
    for update;
    if not found then
        return pgque_internal.partition_plain(v_queue, i_consumer, i_n);
    end if;
    if i_n = v_partition.n and v_partition.next_n is null then
        return true;
    end if;
    if v_partition.next_n is null then
        -- Movers of retries that are under way finish first, so that the tick taken here covers what they moved; those
        -- that follow leave the retries of these slots alone.
        update pgque.partition_consumer p set next_n = i_n where p.queue_id = v_queue.queue_id and p.co_name = i_consumer;
        update pgque.partition_consumer p
        set last_tick = pgque_internal.take_tick(
                v_queue, coalesce(pg_sequence_last_value(v_queue.queue_sequence), 0), false, true, true)
        where p.queue_id = v_queue.queue_id and p.co_name = i_consumer;
    elsif v_partition.next_n <> i_n then
        raise exception 'consumer % on % is changing to n=% already', i_consumer, i_queue, v_partition.next_n
            using hint = 'Let its workers go on until that is complete.';
    end if;
    return pgque_internal.exchange_slots(v_queue.queue_id, i_consumer);
end
$$;

-- Makes slots of a plain consumer, or a plain consumer stay one.
create or replace function pgque_internal.partition_plain(i_queue pgque.queue, i_consumer text, i_n integer) returns boolean
language plpgsql
as $$
declare
    v_sub    pgque_internal.sub := pgque_internal.lock_sub(i_queue.queue_name, i_consumer);
    v_cursor pgque_internal.cursor;
    v_slot   bigint;
begin
    if v_sub.sub_role <> 'normal' then
        raise exception 'consumer % on % is shared by a cooperative group', i_consumer, i_queue.queue_name
            using hint = 'Unregister its members first; the group becomes a normal consumer with the last one.';
    end if;
    if i_n = 0 then
        return true;
    end if;
    v_cursor := pgque_internal.newest_cursor(v_sub.sub_no);
    perform pgque_internal.require_unused(v_sub, v_cursor, i_queue.queue_name, i_consumer);
    -- Waits for movers of retries that are under way.
    insert into pgque.partition_consumer (queue_id, co_name, n) values (i_queue.queue_id, i_consumer, i_n);
    for i in 0 .. i_n - 1 loop
        perform pgque_internal.add_slot(i_queue.queue_name, i_queue.queue_id, i_consumer, i, i_n, v_cursor.cur_last_tick);
        if v_cursor.cur_next_tick is not null then
            -- In the middle of a window, like the consumer.
            v_slot := (pgque_internal.find_sub(i_queue.queue_name, pgque_internal.slot_name(i_consumer, i, i_n))).sub_no;
            perform pgque_internal.append_cursor(v_slot, (pgque_internal.newest_cursor(v_slot)).cur_seq, v_cursor.cur_last_tick,
                                                 v_cursor.cur_next_tick, null, v_cursor.cur_prefix);
        end if;
    end loop;
    perform pgque_internal.inherit_retries(i_queue, v_sub, i_consumer, i_n);
    delete from pgque_internal.sub s where s.sub_no = v_sub.sub_no;
    return true;
end
$$;

-- Makes retries again of the redelivered events of a window.
create or replace function pgque_internal.inherit_redelivered(i_queue pgque.queue, i_batch pgque_internal.batch) returns void
language plpgsql
as $$
begin
    execute format($query$
        insert into pgque.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_txid, ev_owner, ev_retry, ev_type, ev_data,
                                       ev_extra1, ev_extra2, ev_extra3, ev_extra4)
        select now(), $1, e.ev_id, e.ev_time, e.ev_txid, $2, e.ev_retry, e.ev_type, e.ev_data,
               e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4
        from (%s) e
        where e.ev_owner = $2
        on conflict on constraint rq_pkey do nothing
        $query$, pgque_internal.batch_query(i_batch, null))
    using i_queue.queue_id, i_batch.sub_id;
end
$$;

-- Leaves what a subscription has still to be redelivered to the slots, or the plain consumer, that follow it:
-- its waiting retries with the order of their keys, and the redelivered events that lie in the log behind its position.
create or replace function pgque_internal.inherit_retries(i_queue pgque.queue, i_sub pgque_internal.sub, i_consumer text, i_n integer)
returns void
language plpgsql
as $$
declare
    v_cursor pgque_internal.cursor := pgque_internal.newest_cursor(i_sub.sub_no);
    v_batch  pgque_internal.batch;
begin
    v_batch.sub_id := i_sub.sub_id;
    v_batch.queue_prefix := i_queue.queue_data_pfx;
    v_batch.slots := 7;
    v_batch.prev_snapshot := (pgque_internal.tick_at(i_sub, v_cursor.cur_last_tick)).tick_snapshot;
    if v_cursor.cur_prefix is not null then
        -- Of the window that is settled in part, the rest.
        v_batch.prefix := v_cursor.cur_prefix;
        v_batch.next_snapshot := (pgque_internal.tick_at(i_sub, v_cursor.cur_next_tick)).tick_snapshot;
        perform pgque_internal.inherit_redelivered(i_queue, v_batch);
        v_batch.prefix := null;
        v_batch.prev_snapshot := v_batch.next_snapshot;
    end if;
    v_batch.next_snapshot := pg_current_snapshot();
    perform pgque_internal.inherit_redelivered(i_queue, v_batch);

    update pgque.retry_queue r
    set ev_owner = (pgque_internal.find_sub(i_queue.queue_name, case i_n
            when 0 then i_consumer
            else pgque_internal.slot_name(i_consumer, pgque.slot_of(r.ev_extra1, i_n), i_n) end)).sub_id
    where r.ev_owner = i_sub.sub_id;

    update pgque_internal.hold h
    set hold_sub = (pgque_internal.find_sub(i_queue.queue_name, case i_n
            when 0 then i_consumer
            else pgque_internal.slot_name(i_consumer, pgque.slot_of(h.hold_key, i_n), i_n) end)).sub_no
    where h.hold_sub = i_sub.sub_no;
end
$$;

-- Completes a change of slots once all present ones have read up to the tick of the change.
--   result  whether it is complete
create or replace function pgque_internal.exchange_slots(i_queue_id int4, i_consumer text) returns boolean
language plpgsql
as $$
declare
    v_queue     pgque.queue;
    v_partition pgque.partition_consumer;
    v_subs      pgque_internal.sub[];
    v_sub       pgque_internal.sub;
    v_cursor    pgque_internal.cursor;
begin
    select * into v_queue from pgque.queue q where q.queue_id = i_queue_id;
    select * into v_partition from pgque.partition_consumer p
    where p.queue_id = i_queue_id and p.co_name = i_consumer
    for update;
    v_subs := array(
        select s
        from pgque_internal.sub s
        join pgque.consumer c on c.co_id = s.sub_consumer
        where s.sub_queue = i_queue_id and s.sub_part is not null
          and c.co_name = pgque_internal.slot_name(i_consumer, s.sub_part, v_partition.n)
        order by s.sub_part
        for update of s skip locked);
    if cardinality(v_subs) < (select count(*)
                              from pgque_internal.sub s
                              join pgque.consumer c on c.co_id = s.sub_consumer
                              where s.sub_queue = i_queue_id and s.sub_part is not null
                                and c.co_name = pgque_internal.slot_name(i_consumer, s.sub_part, v_partition.n)) then
        -- Somebody is at work on one of them.
        return false;
    end if;
    foreach v_sub in array v_subs loop
        v_cursor := pgque_internal.newest_cursor(v_sub.sub_no);
        if v_cursor.cur_next_tick is null and v_cursor.cur_last_tick < v_partition.last_tick
           and not pgque_internal.any_events(v_sub, v_cursor.cur_last_tick, v_partition.last_tick, null) then
            perform pgque_internal.append_cursor(v_sub.sub_no, v_cursor.cur_seq, v_partition.last_tick, null, null, null);
            continue;
        end if;
        if v_cursor.cur_last_tick < v_partition.last_tick then
            return false;
        end if;
    end loop;

    if v_partition.next_n = 0 then
        perform pgque.register_consumer_at(v_queue.queue_name, i_consumer, v_partition.last_tick);
    else
        for i in 0 .. v_partition.next_n - 1 loop
            perform pgque_internal.add_slot(v_queue.queue_name, i_queue_id, i_consumer, i, v_partition.next_n, v_partition.last_tick);
        end loop;
    end if;
    foreach v_sub in array v_subs loop
        perform pgque_internal.inherit_retries(v_queue, v_sub, i_consumer, v_partition.next_n);
        delete from pgque_internal.sub s where s.sub_no = v_sub.sub_no;
    end loop;
    if v_partition.next_n = 0 then
        delete from pgque.partition_consumer p where p.queue_id = i_queue_id and p.co_name = i_consumer;
    else
        -- Workers of the old slots must claim anew, whatever they held.
        delete from pgque.partition_slot p
        where p.queue_id = i_queue_id and p.co_name = i_consumer and p.slot >= v_partition.next_n;
        update pgque.partition_slot p
        set lease_owner = null, lease_until = null, epoch = p.epoch + 1
        where p.queue_id = i_queue_id and p.co_name = i_consumer;
        update pgque.partition_consumer p
        set n = p.next_n, next_n = null, last_tick = null
        where p.queue_id = i_queue_id and p.co_name = i_consumer;
    end if;
    return true;
end
$$;

-- Completes the changes of slots that can be.
--   result  number of consumers changed
create or replace function pgque_internal.exchange_all_slots() returns integer
language plpgsql
as $$
declare
    v_partition pgque.partition_consumer;
    v_count     integer := 0;
begin
    for v_partition in
        select p.*
        from pgque.partition_consumer p
        join pgque.queue q on q.queue_id = p.queue_id
        where p.next_n is not null
        for update of p skip locked
        for key share of q skip locked
    loop
        v_count := v_count + pgque_internal.exchange_slots(v_partition.queue_id, v_partition.co_name)::int4;
    end loop;
    return v_count;
end
$$;

-- ---------------------------------------------------------------------------------------------------
-- Instances of an application that share the slots
-- ---------------------------------------------------------------------------------------------------

-- Takes an instance's fair share of the slots: all instances that call this within their lease's time get the same
-- number, but for one. Free slots are taken up to the share; those beyond it are to be released when their work is
-- done, with lease_release. Who should look again is notified by 'lease <slot>' and 'slots <consumer>'.
--   i_queue, i_consumer, i_n  consumer and its number of slots
--   i_instance, i_lease       as of lease_acquire
--   slot, epoch               slots that the instance holds, and the epochs of their leases
--   surplus                   whether the slot is beyond the share
create or replace function pgque.claim_slots(i_queue text, i_consumer text, i_n integer, i_instance text, i_lease interval)
returns table (slot integer, epoch bigint, surplus boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_partition pgque.partition_consumer;
    v_all       bigint;
    v_before    bigint;
    v_share     bigint;
    v_held      bigint;
    v_slot      integer;
begin
    if i_n is null then
        raise exception 'the number of slots is needed';
    end if;
    perform pgque_internal.require_heartbeat(i_instance, i_lease);
    v_partition := pgque_internal.check_partition(i_queue, i_consumer, 0, i_n);
    insert into pgque_internal.slot_instance (si_queue, si_consumer, si_instance)
    values (v_partition.queue_id, i_consumer, i_instance)
    on conflict on constraint slot_instance_pkey do nothing;
    if found then
        perform pg_notify('pgque_' || i_queue, 'slots ' || i_consumer);
    end if;

    select count(*), count(*) filter (where m.si_instance < i_instance) into v_all, v_before
    from pgque_internal.slot_instance m
    join pgque_internal.instance i on i.ins_name = m.si_instance
    where m.si_queue = v_partition.queue_id and m.si_consumer = i_consumer
      and (m.si_instance = i_instance or i.ins_heartbeat > clock_timestamp() - i_lease);
    v_share := i_n / v_all + (v_before < i_n % v_all)::int4;
    v_held := (select count(*) from pgque_internal.slots_of(v_partition, i_n) s where s.sub_instance = i_instance);
    for v_slot in
        select s.sub_part
        from pgque_internal.slots_of(v_partition, i_n) s
        where s.sub_instance is distinct from i_instance and not pgque_internal.lease_is_alive(s)
        order by (s.sub_part - v_before * i_n / v_all + i_n) % i_n
    loop
        exit when v_held >= v_share;
        if pgque.lease_acquire(i_queue, pgque_internal.slot_name(i_consumer, v_slot, i_n), i_instance, i_lease) is not null then
            v_held := v_held + 1;
        end if;
    end loop;
    return query
        select s.sub_part, s.sub_epoch, row_number() over (order by s.sub_part) > v_share
        from pgque_internal.slots_of(v_partition, i_n) s
        where s.sub_instance = i_instance
        order by s.sub_part;
end
$$;

-- Registrations of a consumer's slots.
create or replace function pgque_internal.slots_of(i_partition pgque.partition_consumer, i_n int4) returns setof pgque_internal.sub
language sql
set search_path = pg_catalog, pg_temp
as $$
    select s.*
    from generate_series(0, i_n - 1) k
    join pgque.consumer c on c.co_name = pgque_internal.slot_name(i_partition.co_name, k, i_n)
    join pgque_internal.sub s on s.sub_queue = i_partition.queue_id and s.sub_consumer = c.co_id
$$;

-- Takes an instance out of those that share the slots of a consumer. The slots that it still holds it gives up one by
-- one, with lease_release.
--   i_queue, i_consumer, i_instance  as of claim_slots
create or replace function pgque.leave_slots(i_queue text, i_consumer text, i_instance text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from pgque_internal.slot_instance m
    using pgque.queue q
    where q.queue_name = i_queue and m.si_queue = q.queue_id and m.si_consumer = i_consumer and m.si_instance = i_instance;
    perform pg_notify('pgque_' || i_queue, 'slots ' || i_consumer);
end
$$;

-- How a consumer is read.
--   i_queue, i_consumer  consumer
--   mode                 'normal', 'cooperative' or 'partitioned'; NULL: there is none
--   slots                number of slots of a partitioned consumer
create or replace function pgque.consumer_mode(i_queue text, i_consumer text, out mode text, out slots integer)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub pgque_internal.sub := pgque_internal.find_sub(i_queue, i_consumer);
begin
    select 'partitioned', p.n into mode, slots
    from pgque.queue q
    join pgque.partition_consumer p on p.queue_id = q.queue_id and p.co_name = i_consumer
    where q.queue_name = i_queue;
    if mode is null and v_sub.sub_no is not null then
        mode := case
            when v_sub.sub_role = 'coop_main' and pgque_internal.has_members(v_sub.sub_id) then 'cooperative'
            else 'normal' end;
    end if;
end
$$;

-- Slots of all partitioned consumers, subscribed or not.
create or replace view pgque.partition_slot_status as
select q.queue_name,
       p.co_name as consumer,
       k.slot,
       p.n,
       case when l.lease_until > clock_timestamp() then l.lease_owner end as lease_owner,
       l.lease_until,
       coalesce(l.epoch, 0) as epoch,
       s.sub_last_tick as last_tick,
       greatest(n.tick_event_seq - t.tick_event_seq, 0) as pending_events
from pgque.partition_consumer p
join pgque.queue q on q.queue_id = p.queue_id
cross join lateral generate_series(0, p.n - 1) as k (slot)
left join pgque.partition_slot l on l.queue_id = p.queue_id and l.co_name = p.co_name and l.slot = k.slot
left join pgque.consumer c on c.co_name = p.co_name || '#' || k.slot || '/' || p.n
left join pgque.subscription s on s.sub_queue = p.queue_id and s.sub_consumer = c.co_id
left join lateral (
    select * from pgque.tick t where t.tick_queue = p.queue_id and t.tick_id = s.sub_last_tick limit 1
) t on true
left join lateral (
    select * from pgque.tick n where n.tick_queue = p.queue_id order by n.tick_id desc limit 1
) n on true;
