-- Idempotent sends: one event for a key, however often it is sent.
--
-- What this topic guarantees
--   * Key and event are one: both are committed, or neither is. Of any number of sessions that use a key at
--     once, one sends; the others wait for its end and get its event, or send if it was rolled back.
--   * A repeat writes nothing and does not prolong the key.
--   * A key that was used for another type or payload is still the same key; send_idem_checked() tells.
--   * Expired keys are removed by maint(), however many; until then they do not count.

-- Hash of what an event says.
create or replace function pgque_internal.event_hash(i_type text, i_data text) returns bytea
language sql stable
as $$
    -- In the encoding of the database: any text is valid in it. The length keeps type and data apart.
    select pg_catalog.sha256(pg_catalog.convert_to(
        coalesce(pg_catalog.length(i_type) || ':' || i_type, '-') || coalesce('+' || i_data, ''),
        pg_catalog.getdatabaseencoding()))
$$;

-- Sends an event unless its key is in use.
--   arguments and results  as of pgque.send_idem_checked
create or replace function pgque_internal.send_once(
    i_queue text, i_type text, i_payload text, i_idem_key text, i_ttl interval, i_partition_key text,
    i_extra3 text, i_extra4 text,
    out event_id bigint, out deduped boolean, out mismatch boolean)
language plpgsql
as $$
declare
    v_queue pgque.queue;
    v_txid  xid8;
    v_hash  bytea;
    v_known bytea;
begin
    if i_idem_key is null then
        raise exception 'idem_key must not be null';
    end if;
    if i_ttl is null or i_ttl <= interval '0' then
        raise exception 'ttl must be a positive interval';
    end if;
    select * into v_queue from pgque.queue q where q.queue_name = i_queue;
    if not found then
        perform pgque_internal.writable_queue(i_queue);
    end if;

    v_hash := pgque_internal.event_hash(i_type, i_payload);
    select i.event_id, i.idem_hash into event_id, v_known from pgque.idem i
    where i.queue_id = v_queue.queue_id and i.idem_key = i_idem_key and i.expires_at > pg_catalog.now();
    deduped := found;
    if not deduped then
        if v_queue.queue_disable_insert then
            perform pgque_internal.writable_queue(i_queue);
        end if;
        v_txid := pg_catalog.pg_current_xact_id();
        event_id := pg_catalog.nextval(v_queue.queue_sequence);
        -- Waits for another transaction that uses the key. When that commits, its row stays as it is, but locked.
        insert into pgque.idem as i (queue_id, idem_key, event_id, expires_at, idem_hash)
        values (v_queue.queue_id, i_idem_key, event_id, pg_catalog.now() + i_ttl, v_hash)
        on conflict on constraint idem_pkey do update
        set event_id = excluded.event_id, expires_at = excluded.expires_at, idem_hash = excluded.idem_hash
        where i.expires_at <= pg_catalog.now();
        deduped := not found;
        if deduped then
            select i.event_id, i.idem_hash into event_id, v_known from pgque.idem i
            where i.queue_id = v_queue.queue_id and i.idem_key = i_idem_key;
        end if;
    end if;
    mismatch := deduped and coalesce(v_known <> v_hash, false);
    if deduped then
        return;
    end if;

    insert into pgque.event (ev_id, ev_time, ev_txid, ev_type, ev_data, ev_extra1, ev_extra2,
                             ev_extra3, ev_extra4, ev_queue, ev_slot)
    values (event_id, pg_catalog.now(), v_txid, i_type, i_payload, i_partition_key, i_idem_key,
            i_extra3, i_extra4, v_queue.queue_id, v_queue.queue_cur_table);
    if 'pgque.maint_idem' = any (v_queue.queue_extra_maint) is not true then
        perform pgque_internal.add_idem_hook(v_queue.queue_id);
    end if;
end
$$;

-- Makes maint() remove the expired keys of a queue. Waits for nobody: a later send does it if the queue's row is
-- locked now.
create or replace function pgque_internal.add_idem_hook(i_queue_id int4) returns void
language plpgsql
as $$
begin
    perform from pgque.queue q where q.queue_id = i_queue_id for no key update skip locked;
    if found then
        update pgque.queue q
        set queue_extra_maint = q.queue_extra_maint || array['pgque.maint_idem']
        where q.queue_id = i_queue_id
          and 'pgque.maint_idem' = any (q.queue_extra_maint) is not true;
    end if;
end
$$;

-- Sends one event, unless its key was used in the queue before and has not expired.
--   i_queue          queue; errors as of pgque.send
--   i_type           event type
--   i_payload        data; stored as it is
--   i_idem_key       key, stored in extra2; error 'idem_key must not be null', 54000 for one of
--                    more than some 2.7 kB
--   i_ttl            how long the key counts, from the start of the transaction; error 'ttl must be a positive interval'
--   i_partition_key  partition key, stored in extra1
--   event_id         event that the key stands for
--   deduped          true: it was sent before, and nothing was sent now
create or replace function pgque.send_idem(
    i_queue text, i_type text, i_payload text, i_idem_key text, i_ttl interval default '1 hour',
    i_partition_key text default null)
returns table (event_id bigint, deduped boolean)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.event_id, s.deduped
    from pgque_internal.send_once(i_queue, i_type, i_payload, i_idem_key, i_ttl, i_partition_key, null, null) s
$$;

-- Same, with data that is stored as its canonical text.
create or replace function pgque.send_idem(
    i_queue text, i_type text, i_payload jsonb, i_idem_key text, i_ttl interval default '1 hour',
    i_partition_key text default null)
returns table (event_id bigint, deduped boolean)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.event_id, s.deduped
    from pgque_internal.send_once(i_queue, i_type, i_payload::text, i_idem_key, i_ttl, i_partition_key, null, null) s
$$;

-- Sends as send_idem does, and tells whether the key was used for something else.
--   arguments  as of send_idem
--   event_id   event that the key stands for
--   deduped    true: it was sent before, and nothing was sent now
--   mismatch   true: what was sent before had another type or payload
create or replace function pgque.send_idem_checked(
    i_queue text, i_type text, i_payload text, i_idem_key text, i_ttl interval default '1 hour',
    i_partition_key text default null)
returns table (event_id bigint, deduped boolean, mismatch boolean)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.event_id, s.deduped, s.mismatch
    from pgque_internal.send_once(i_queue, i_type, i_payload, i_idem_key, i_ttl, i_partition_key, null, null) s
$$;

-- Same, with data that is stored as its canonical text.
create or replace function pgque.send_idem_checked(
    i_queue text, i_type text, i_payload jsonb, i_idem_key text, i_ttl interval default '1 hour',
    i_partition_key text default null)
returns table (event_id bigint, deduped boolean, mismatch boolean)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.event_id, s.deduped, s.mismatch
    from pgque_internal.send_once(i_queue, i_type, i_payload::text, i_idem_key, i_ttl, i_partition_key, null, null) s
$$;

-- ---------------------------------------------------------------------------------------------------
-- Removing expired keys
-- ---------------------------------------------------------------------------------------------------

-- Removes expired keys, passing over those that a sender is taking anew.
--   i_queue_id  queue; NULL: all
--   i_limit     most keys to remove; NULL: no limit
--   result      number removed
create or replace function pgque_internal.drop_idem(i_queue_id int4, i_limit bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_count bigint;
begin
    with expired as (
        select i.queue_id, i.idem_key from pgque.idem i
        where i.expires_at <= now()
          and i.queue_id between coalesce(i_queue_id, -2147483648) and coalesce(i_queue_id, 2147483647)
        order by i.expires_at
        limit i_limit
        for update skip locked
    )
    delete from pgque.idem i using expired e
    where i.queue_id = e.queue_id and i.idem_key = e.idem_key;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

-- Removes up to 10,000 expired keys of a queue.
--   i_queue_name  queue; an unknown one has none
--   result        1: there may be more, call again; 0: all are removed
create or replace function pgque.maint_idem(i_queue_name text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue_id int4;
begin
    select q.queue_id into v_queue_id from pgque.queue q where q.queue_name = i_queue_name;
    if not found then
        return 0;
    end if;
    return (pgque_internal.drop_idem(v_queue_id, 10000) = 10000)::int4;
end
$$;

-- Removes up to 10,000 expired keys of all queues.
--   result  1: there may be more, call again; 0: all are removed
create or replace function pgque.maint_idem() returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select (pgque_internal.drop_idem(null, 10000) = 10000)::int4
$$;

-- Removes all expired keys; a step of maint(), whose calls would otherwise fall behind a busy queue.
--   result  0
create or replace function pgque_internal.drop_expired_keys() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgque_internal.drop_idem(null, null);
    return 0;
end
$$;

-- The keys of a queue go with it.
create or replace function pgque_internal.drop_keys_of_queue() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from pgque.idem i where i.queue_id = old.queue_id;
    return null;
end
$$;

create or replace trigger queue_idem_drop after delete on pgque.queue
for each row execute function pgque_internal.drop_keys_of_queue();

-- Sends as send_idem_checked does, with the other extra columns.
--   i_queue, i_type, i_payload, i_idem_key, i_ttl   as of send_idem
--   i_partition_key                                 as of send_idem, stored in extra1; extra2 holds the key
--   i_extra3, i_extra4                              extra columns, as of insert_event
--   event_id, deduped, mismatch                     as of send_idem_checked
create or replace function pgque.send_once(
    i_queue text, i_type text, i_payload text, i_idem_key text, i_ttl interval, i_partition_key text,
    i_extra3 text, i_extra4 text)
returns table (event_id bigint, deduped boolean, mismatch boolean)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.event_id, s.deduped, s.mismatch
    from pgque_internal.send_once(i_queue, i_type, i_payload, i_idem_key, i_ttl, i_partition_key, i_extra3, i_extra4) s
$$;
