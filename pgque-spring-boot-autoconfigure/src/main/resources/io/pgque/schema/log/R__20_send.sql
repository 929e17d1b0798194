-- Sending: events are appended in the caller's transaction.
--
-- What this topic guarantees
--   * A send is static SQL: one look-up of the queue, which draws the id, and one routed insert. The two functions
--     that most sends go through have it in their own bodies: a nested call costs a send three per cent.
--   * The transaction has its id before an event gets its own. A ticker that reads the event sequence before
--     it gets its transaction id therefore knows that every event up to that value is of an older one.
--   * A client that keeps prepared statements may do without these functions: event_place tells it where to append
--     one event, and the condition that goes with it makes its insert as right as theirs.
--   * A sender that picks a slot from a stale snapshot loses nothing: ticks look into every slot, and a slot
--     is emptied only when nobody needs a row of it.

-- Finds the queue to append to.
--   i_queue  name
--   result   its row; error 'queue not found: …', or 'Insert into queue disallowed'
create or replace function pgque_internal.writable_queue(i_queue text) returns pgque.queue
language plpgsql
as $$
declare
    v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue q where q.queue_name = i_queue;
    if not found then
        raise exception 'queue not found: %', i_queue
            using hint = 'Create it with pgque.create_queue.';
    end if;
    if v_queue.queue_disable_insert and pg_catalog.current_setting('session_replication_role') <> 'replica' then
        raise exception 'Insert into queue disallowed';
    end if;
    return v_queue;
end
$$;

-- Appends many events of one type in one statement.
create or replace function pgque_internal.append_events(i_queue text, i_type text, i_data text[]) returns bigint[]
language plpgsql
as $$
declare
    v_queue pgque.queue;
    v_txid  xid8;
    v_ids   bigint[];
begin
    if i_data is null then
        raise exception 'payloads must not be null';
    end if;
    if pg_catalog.cardinality(i_data) = 0 then
        return '{}';
    end if;
    v_queue := pgque_internal.writable_queue(i_queue);

    v_txid := pg_catalog.pg_current_xact_id();
    v_ids := array(select pg_catalog.nextval(v_queue.queue_sequence)
                   from pg_catalog.generate_series(1, pg_catalog.cardinality(i_data)));
    insert into pgque.event (ev_id, ev_time, ev_txid, ev_type, ev_data, ev_queue, ev_slot)
    select pg_catalog.unnest(v_ids), pg_catalog.now(), v_txid, i_type, pg_catalog.unnest(i_data),
           v_queue.queue_id, v_queue.queue_cur_table;
    return v_ids;
end
$$;

-- Appends many events in one statement; a NULL array is one of NULLs.
create or replace function pgque_internal.append_mixed(
    i_queue text, i_types text[], i_data text[], i_extra1 text[], i_extra2 text[], i_extra3 text[], i_extra4 text[])
returns bigint[]
language plpgsql
as $$
declare
    v_count int4 := pg_catalog.cardinality(i_data);
    v_queue pgque.queue;
    v_txid  xid8;
    v_ids   bigint[];
begin
    if i_data is null then
        raise exception 'payloads must not be null';
    end if;
    if i_types is null then
        raise exception 'types must not be null';
    end if;
    if pg_catalog.cardinality(i_types) <> v_count or pg_catalog.cardinality(i_extra1) <> v_count
       or pg_catalog.cardinality(i_extra2) <> v_count or pg_catalog.cardinality(i_extra3) <> v_count
       or pg_catalog.cardinality(i_extra4) <> v_count then
        raise exception 'arrays differ in length: types %, payloads %, extra1 %, extra2 %, extra3 %, extra4 %',
            pg_catalog.cardinality(i_types), v_count, pg_catalog.cardinality(i_extra1), pg_catalog.cardinality(i_extra2),
            pg_catalog.cardinality(i_extra3), pg_catalog.cardinality(i_extra4);
    end if;
    if v_count = 0 then
        return '{}';
    end if;
    v_queue := pgque_internal.writable_queue(i_queue);

    v_txid := pg_catalog.pg_current_xact_id();
    v_ids := array(select pg_catalog.nextval(v_queue.queue_sequence)
                   from pg_catalog.generate_series(1, v_count));
    insert into pgque.event (ev_id, ev_time, ev_txid, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4,
                             ev_queue, ev_slot)
    select pg_catalog.unnest(v_ids), pg_catalog.now(), v_txid, pg_catalog.unnest(i_types), pg_catalog.unnest(i_data),
           pg_catalog.unnest(i_extra1), pg_catalog.unnest(i_extra2), pg_catalog.unnest(i_extra3), pg_catalog.unnest(i_extra4),
           v_queue.queue_id, v_queue.queue_cur_table;
    return v_ids;
end
$$;

-- Sends one event of type 'default'.
--   queue_name  queue
--   payload     data; stored as its canonical text
--   result      event id
create or replace function pgque.send(queue_name text, payload jsonb) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque.send(queue_name, 'default'::text, payload::text);
end
$$;

-- Sends one event of type 'default'.
--   queue_name  queue
--   payload     data; stored as it is
--   result      event id
create or replace function pgque.send(queue_name text, payload text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque.send(queue_name, 'default'::text, payload);
end
$$;

-- Sends one event.
--   queue_name  queue
--   type_name   event type
--   payload     data; stored as its canonical text
--   result      event id
create or replace function pgque.send(queue_name text, type_name text, payload jsonb) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque.send(queue_name, type_name, payload::text);
end
$$;

-- Sends one event.
--   queue_name  queue
--   type_name   event type
--   payload     data; stored as it is
--   result      event id
create or replace function pgque.send(queue_name text, type_name text, payload text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    v_queue_id int4;
    v_slot     int4;
    v_disabled boolean;
    v_txid     xid8;
    v_id       bigint;
begin
    select q.queue_id, q.queue_cur_table, q.queue_disable_insert, pg_current_xact_id(), nextval(q.queue_sequence)
    into v_queue_id, v_slot, v_disabled, v_txid, v_id
    from pgque.queue q
    where q.queue_name = send.queue_name;
    if v_queue_id is null or v_disabled then
        perform pgque_internal.writable_queue(queue_name);
    end if;
    insert into pgque.event (ev_id, ev_time, ev_txid, ev_type, ev_data, ev_queue, ev_slot)
    values (v_id, now(), v_txid, type_name, payload, v_queue_id, v_slot);
    return v_id;
end
$$;

-- Sends one event with a partition key: events of one key are delivered in their order to partitioned consumers.
--   i_queue          queue
--   i_type           event type
--   i_payload        data; stored as its canonical text
--   i_partition_key  key, stored in extra1
--   result           event id
create or replace function pgque.send(i_queue text, i_type text, i_payload jsonb, i_partition_key text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque.send(i_queue, i_type, i_payload::text, i_partition_key);
end
$$;

-- Same, with data that is stored as it is.
create or replace function pgque.send(i_queue text, i_type text, i_payload text, i_partition_key text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque.insert_event(i_queue, i_type, i_payload, i_partition_key, null::text, null::text, null::text);
end
$$;

-- Sends many events of type 'default'.
--   queue_name  queue
--   payloads    data, one event each; an array of several dimensions is taken flat
--   result      event ids in the order of the payloads, ascending
create or replace function pgque.send_batch(queue_name text, payloads jsonb[]) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.append_events(queue_name, 'default', payloads::text[]);
end
$$;

-- Sends many events of type 'default'.
--   queue_name  queue
--   payloads    data, one event each; an array of several dimensions is taken flat
--   result      event ids in the order of the payloads, ascending
create or replace function pgque.send_batch(queue_name text, payloads text[]) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.append_events(queue_name, 'default', payloads);
end
$$;

-- Sends many events of one type.
--   queue_name  queue
--   type_name   event type
--   payloads    data, one event each; an array of several dimensions is taken flat
--   result      event ids in the order of the payloads, ascending
create or replace function pgque.send_batch(queue_name text, type_name text, payloads jsonb[]) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.append_events(queue_name, type_name, payloads::text[]);
end
$$;

-- Sends many events of one type.
--   queue_name  queue
--   type_name   event type
--   payloads    data, one event each; an array of several dimensions is taken flat
--   result      event ids in the order of the payloads, ascending
create or replace function pgque.send_batch(queue_name text, type_name text, payloads text[]) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.append_events(queue_name, type_name, payloads);
end
$$;

-- Sends many events, each with its own type and extra columns.
--   i_queue             queue
--   i_types             types, one for each payload
--   i_payloads          data, one event each; errors 'payloads must not be null', 'arrays differ in length: …'
--   i_extra1..i_extra4  extra columns, as of insert_event, one for each payload; NULL: none has it
--   result              event ids in the order of the payloads, ascending
create or replace function pgque.send_events(
    i_queue text, i_types text[], i_payloads text[], i_extra1 text[], i_extra2 text[], i_extra3 text[], i_extra4 text[])
returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.append_mixed(i_queue, i_types, i_payloads, i_extra1, i_extra2, i_extra3, i_extra4);
end
$$;

-- Sends one event.
--   queue_name       queue
--   ev_type, ev_data event type and data
--   result           event id
create or replace function pgque.insert_event(queue_name text, ev_type text, ev_data text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque.send(queue_name, ev_type, ev_data);
end
$$;

-- Sends one event with extra columns.
--   queue_name            queue
--   ev_type, ev_data      event type and data
--   ev_extra1..ev_extra4  extra columns; by convention 1 is the key, 2 the idempotency key, 4 the headers
--   result                event id
create or replace function pgque.insert_event(
    queue_name text, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    v_queue_id int4;
    v_slot     int4;
    v_disabled boolean;
    v_txid     xid8;
    v_id       bigint;
begin
    select q.queue_id, q.queue_cur_table, q.queue_disable_insert, pg_current_xact_id(), nextval(q.queue_sequence)
    into v_queue_id, v_slot, v_disabled, v_txid, v_id
    from pgque.queue q
    where q.queue_name = insert_event.queue_name;
    if v_queue_id is null or v_disabled then
        perform pgque_internal.writable_queue(queue_name);
    end if;
    insert into pgque.event as e (ev_id, ev_time, ev_txid, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4,
                                  ev_queue, ev_slot)
    values (v_id, now(), v_txid, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4, v_queue_id, v_slot);
    return v_id;
end
$$;

-- Appends an event with all its columns, as a redelivery does.
--   queue_name  queue
--   ev_id       event id; NULL takes the next one (which is consumed in any case)
--   ev_time     time of the event; NULL means now
--   ev_owner    subscription the event is for; NULL means all
--   ev_retry    number of redeliveries so far
--   result      event id
create or replace function pgque.insert_event_raw(
    queue_name text, ev_id bigint, ev_time timestamptz, ev_owner integer, ev_retry integer, ev_type text, ev_data text,
    ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    v_queue pgque.queue := pgque_internal.writable_queue(queue_name);
    v_txid  xid8 := pg_current_xact_id();
    v_id    bigint := nextval(v_queue.queue_sequence);
begin
    v_id := coalesce(ev_id, v_id);
    insert into pgque.event as e (ev_id, ev_time, ev_txid, ev_owner, ev_retry, ev_type, ev_data,
                             ev_extra1, ev_extra2, ev_extra3, ev_extra4, ev_queue, ev_slot)
    values (v_id, coalesce(ev_time, now()), v_txid, ev_owner, ev_retry, ev_type, ev_data,
            ev_extra1, ev_extra2, ev_extra3, ev_extra4, v_queue.queue_id, v_queue.queue_cur_table);
    return v_id;
end
$$;

-- Sends many events of one type; for the owner's own scripts.
--   queue_name            queue
--   ev_type, ev_data_list event type and data, one event each
--   result                event ids in the order of the data, ascending
create or replace function pgque.insert_event_bulk(queue_name text, ev_type text, ev_data_list text[]) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.append_events(queue_name, ev_type, ev_data_list);
end
$$;

-- Table that events go to at the moment; valid within the current transaction.
--   x_queue_name  queue
--   result        schema-qualified name, usable in SQL
create or replace function pgque.current_event_table(x_queue_name text) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue q where q.queue_name = x_queue_name;
    if not found then
        raise exception 'Event queue not found: %', x_queue_name;
    end if;
    if v_queue.queue_disable_insert and current_setting('session_replication_role') <> 'replica' then
        raise exception 'Writing to queue disabled: %', x_queue_name;
    end if;
    return v_queue.queue_data_pfx || '_' || v_queue.queue_cur_table;
end
$$;

-- Where the caller may append one event by a statement of his own at the moment:
--   insert into pgque.event_<queue_id>_<slot> (ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4)
--   select … from pgque.queue q
--   where q.queue_id = <queue_id> and q.queue_cur_table = <slot> and not q.queue_disable_insert
--   returning ev_id
-- When that inserts nothing, the place is none any more, and insert_event tells why or finds the next one. After the
-- drop of the queue the table may be gone, too. It is worth it for a statement that is prepared once and run often.
--   i_queue   queue
--   queue_id  its id; NULL when there is no place: an unknown or disabled queue, one that this transaction has made
--             or turned, a table of an earlier release, or privileges that the caller lacks
--   slot      slot of its ring; NULL with it
create or replace function pgque.event_place(i_queue text, out queue_id int4, out slot int4)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- With the rights of the caller, since it is he who appends; and an error would be one of his send.
    if not (select bool_and(has_column_privilege('pgque.queue', c, 'select'))
            from unnest(array['queue_id', 'queue_name', 'queue_cur_table', 'queue_disable_insert',
                              'queue_switch_step1']) c) then
        return;
    end if;
    select q.queue_id, q.queue_cur_table into queue_id, slot
    from pgque.queue q
    where q.queue_name = i_queue and not q.queue_disable_insert
      and q.queue_switch_step1 is distinct from pg_current_xact_id_if_assigned()::text::bigint
      and has_sequence_privilege(to_regclass(format('pgque.event_%s_id_seq', q.queue_id)), 'usage')
      and exists (
          select from pg_attribute a
          join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
          where a.attrelid = to_regclass(format('pgque.event_%s_%s', q.queue_id, q.queue_cur_table))
            and a.attname = 'ev_id'
            and pg_get_expr(d.adbin, d.adrelid) like '%pg_current_xact_id%'
            and has_column_privilege(a.attrelid, 'ev_id', 'select')
            and (select bool_and(has_column_privilege(a.attrelid, c, 'insert'))
                 from unnest(array['ev_type', 'ev_data', 'ev_extra1', 'ev_extra2', 'ev_extra3', 'ev_extra4']) c));
end
$$;
