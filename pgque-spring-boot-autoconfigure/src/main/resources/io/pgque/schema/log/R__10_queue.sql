-- Queues: creating, configuring and dropping them.
--
-- What this topic guarantees
--   * A queue exists whole or not at all, and starts with a tick, so that a consumer can subscribe at once.
--   * Any number of sessions may create the same queue at the same time: one gets 1, the others 0.
--   * Making or removing the tables of one queue never waits for, or blocks, senders of another: leaves are
--     made on their own and attached; a drop that would have to wait leaves the tables to maint().
--   * Whoever may send may append to an event table by an insert of his own. What he appends has the id, the
--     transaction and the place that a send gives it: the columns that say so are not his to set.

-- Splits a relation's name at its first dot and quotes both parts.
--   i_name  name, schema-qualified or in schema public
--   result  text that is valid in SQL
create or replace function pgque.quote_fqname(i_name text) returns text
language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$
    select case
        when position('.' in i_name) > 0
            then quote_ident(substr(i_name, 1, position('.' in i_name) - 1)) || '.'
                 || quote_ident(substr(i_name, position('.' in i_name) + 1))
        else 'public.' || quote_ident(i_name)
    end
$$;

-- Encodes text for application/x-www-form-urlencoded.
--   val     text
--   result  letters, digits, '-', '_' and '.' as they are, a space as '+', every other byte as '%xx'
create or replace function pgque._urlencode(val text) returns text
language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(string_agg(
        case
            when c ~ '^[A-Za-z0-9_.-]$' then c
            when c = ' ' then '+'
            else regexp_replace(encode(convert_to(c, 'UTF8'), 'hex'), '(..)', '%\1', 'g')
        end, '' order by n), '')
    from regexp_split_to_table(val, '') with ordinality as t (c, n)
$$;

-- Last value of a sequence.
--   i_seq_name  schema-qualified name
--   result      last value; 1 for a sequence that was never used
create or replace function pgque.seq_getval(i_seq_name text) returns bigint
language plpgsql strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_value bigint;
begin
    execute format('select last_value from %s', pgque.quote_fqname(i_seq_name)) into v_value;
    return v_value;
end
$$;

-- Moves a sequence forward.
--   i_seq_name   schema-qualified name
--   i_new_value  value to reach; a lower one than the present leaves the sequence alone
--   result       the sequence's value afterwards
create or replace function pgque.seq_setval(i_seq_name text, i_new_value bigint) returns bigint
language plpgsql strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_value bigint := pgque.seq_getval(i_seq_name);
begin
    if i_new_value > v_value then
        v_value := setval(pgque.quote_fqname(i_seq_name)::regclass, i_new_value);
    end if;
    return v_value;
end
$$;

-- Names of a queue's three event tables.
create or replace function pgque_internal.leaves(i_prefix text) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return array[i_prefix || '_0', i_prefix || '_1', i_prefix || '_2'];
end
$$;

-- Storage settings of a queue's event tables: rows are never updated, and never deleted but by TRUNCATE,
-- so pages are filled whole and autovacuum has nothing to do there.
--   i_queue_name  queue
--   result        1, or 0 for an unknown queue
create or replace function pgque.tune_storage(i_queue_name text) returns integer
language plpgsql strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_prefix text;
    v_leaf   text;
begin
    select q.queue_data_pfx into v_prefix from pgque.queue q where q.queue_name = i_queue_name;
    if not found then
        return 0;
    end if;
    foreach v_leaf in array pgque_internal.leaves(v_prefix) loop
        execute format('alter table %s set (fillfactor = 100, autovacuum_enabled = false, toast.autovacuum_enabled = false)',
                       v_leaf);
    end loop;
    return 1;
end
$$;

-- Copies the grants of one table to another, as the caller.
--   src_schema, src_table  table whose grants are read
--   dst_schema, dst_table  table that receives them
--   result                 number of grants copied
create or replace function pgque._grant_perms_from(src_schema text, src_table text, dst_schema text, dst_table text)
returns integer
language plpgsql strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_grant record;
    v_count integer := 0;
begin
    for v_grant in
        select a.privilege_type, a.grantee, a.is_grantable
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        cross join lateral aclexplode(c.relacl) a
        where n.nspname = src_schema and c.relname = src_table and a.grantee <> c.relowner
    loop
        execute format('grant %s on table %I.%I to %s%s', v_grant.privilege_type, dst_schema, dst_table,
                       case when v_grant.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(v_grant.grantee)) end,
                       case when v_grant.is_grantable then ' with grant option' else '' end);
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

-- Lets readers read a queue's events.
--   i_queue_name  queue
--   result        1; error 'Queue not found' for an unknown queue
create or replace function pgque.grant_perms(i_queue_name text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_prefix text;
    v_leaf   text;
begin
    select q.queue_data_pfx into v_prefix from pgque.queue q where q.queue_name = i_queue_name;
    if not found then
        raise exception 'Queue not found: %', i_queue_name;
    end if;
    foreach v_leaf in array pgque_internal.leaves(v_prefix) loop
        execute format('grant select on table %s to pgque_reader', v_leaf);
    end loop;
    return 1;
end
$$;

-- Lets senders append to an event table by themselves; does nothing when they may already. Nobody else may use the
-- table meanwhile: it is locked, or not there yet for others.
--   i_queue_id, i_slot  queue and slot of its ring
create or replace function pgque_internal.open_leaf(i_queue_id int4, i_slot int4) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_leaf     text := format('pgque.event_%s_%s', i_queue_id, i_slot);
    v_sequence text := format('pgque.event_%s_id_seq', i_queue_id);
begin
    perform from pg_attribute a
    join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = v_leaf::regclass and a.attname = 'ev_id'
      and pg_get_expr(d.adbin, d.adrelid) like '%pg_current_xact_id%';
    if found then
        return;
    end if;
    -- Column defaults run in the order of the columns, so that of ev_txid would be too late: the transaction needs
    -- its id before the event draws its own.
    execute format('alter table %s alter ev_id'
                   ' set default nextval(case when pg_current_xact_id() is not null then %L::regclass end)',
                   v_leaf, v_sequence);
    execute format('grant insert (ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4), select (ev_id)'
                   ' on table %s to pgque_writer', v_leaf);
    execute format('grant usage on sequence %s to pgque_writer', v_sequence);
end
$$;

-- Makes a queue.
--   i_queue_name  name, at most 57 bytes, so that the channel 'pgque_' || name stays within 63
--   result        1 when made, 0 when it was there
create or replace function pgque.create_queue(i_queue_name text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id     int4;
    v_prefix text;
    v_leaf   text;
    v_slot   int4 := 0;
begin
    if i_queue_name is null then
        raise exception 'Invalid NULL value: a queue needs a name';
    end if;
    if octet_length(i_queue_name) > 57 then
        raise exception 'queue name too long: "%" has % bytes, at most 57 are possible',
            i_queue_name, octet_length(i_queue_name);
    end if;

    if exists (select from pgque.queue q where q.queue_name = i_queue_name) then
        return 0;
    end if;
    v_id := nextval('pgque.queue_queue_id_seq');
    v_prefix := 'pgque.event_' || v_id;
    execute format('create sequence %s_id_seq', v_prefix);
    execute format('create sequence %s_tick_seq', v_prefix);
    insert into pgque.queue (queue_id, queue_name, queue_data_pfx, queue_event_seq, queue_tick_seq, queue_sequence)
    values (v_id, i_queue_name, v_prefix, v_prefix || '_id_seq', v_prefix || '_tick_seq',
            (v_prefix || '_id_seq')::regclass)
    on conflict on constraint queue_name_uq do nothing;
    if not found then
        execute format('drop sequence %s_id_seq, %s_tick_seq', v_prefix, v_prefix);
        return 0;
    end if;

    execute format('grant select, update on sequence %s_id_seq, %s_tick_seq to pgque_admin', v_prefix, v_prefix);
    execute format('create table %s (like pgque.event_template including defaults) partition by list (ev_slot)', v_prefix);
    foreach v_leaf in array pgque_internal.leaves(v_prefix) loop
        -- Defaults of its own make a direct insert right.
        execute format('create table %s (like pgque.event_template including defaults)', v_leaf);
        execute format('alter table %s alter ev_queue set default %s, alter ev_slot set default %s',
                       v_leaf, v_id, v_slot);
        perform pgque_internal.open_leaf(v_id, v_slot);
        execute format('create index event_%s_%s_txid_idx on %s (ev_txid)', v_id, v_slot, v_leaf);
        execute format('alter table %s attach partition %s for values in (%s)', v_prefix, v_leaf, v_slot);
        v_slot := v_slot + 1;
    end loop;
    perform pgque.tune_storage(i_queue_name);
    perform pgque.grant_perms(i_queue_name);
    perform pgque_internal.write_readers(v_id);
    -- Last, since creators of other queues wait from here to our commit; senders do not.
    execute format('alter table pgque.event attach partition %s for values in (%s)', v_prefix, v_id);

    -- There are no events yet, so all of them are of older transactions than this one.
    insert into pgque.tick (tick_queue, tick_id, tick_event_seq, tick_event_slots, tick_xid)
    values (v_id, nextval((v_prefix || '_tick_seq')::regclass), 0, 0, pg_current_xact_id());
    return 1;
end
$$;

-- Removes the event tables and sequences of a queue whose row is gone, if that needs no waiting.
--   i_queue_id  id of the queue that was
--   result      true when removed; false while another session uses the event table
create or replace function pgque_internal.drop_events(i_queue_id int4) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '10ms'
as $$
begin
    -- Dropping a partition locks the root against every sender. Waiting for that lock would stop all of them
    -- behind the first one that is still open; and so would waiting for a reader of the leaves with it.
    execute format('lock table pgque.event_%s in access exclusive mode nowait', i_queue_id);
    lock table only pgque.event in access exclusive mode nowait;
    execute format('drop table pgque.event_%s', i_queue_id);
    perform pgque_internal.drop_readers(i_queue_id);
    execute format('drop sequence pgque.event_%s_id_seq, pgque.event_%s_tick_seq', i_queue_id, i_queue_id);
    return true;
exception
    when lock_not_available then
        return false;
end
$$;

-- Removes a queue with its events, ticks, retries and dead letters.
--   x_queue_name  queue
--   x_force       whether to remove its subscriptions too; otherwise they are an error
--   result        1
create or replace function pgque.drop_queue(x_queue_name text, x_force boolean) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue q where q.queue_name = x_queue_name for update;
    if not found then
        raise exception 'No such event queue: %', x_queue_name;
    end if;
    -- Before the subscriptions, as the workers of slots do.
    perform from pgque.partition_consumer p where p.queue_id = v_queue.queue_id for update;
    if exists (select from pgque_internal.sub s where s.sub_queue = v_queue.queue_id) then
        if not coalesce(x_force, false) then
            raise exception 'cannot drop queue "%", consumers still attached', x_queue_name
                using hint = 'Unsubscribe them, or call pgque.drop_queue(queue, true).';
        end if;
        delete from pgque_internal.sub s where s.sub_queue = v_queue.queue_id;
    end if;
    delete from pgque.retry_queue r where r.ev_queue = v_queue.queue_id;
    delete from pgque.tick t where t.tick_queue = v_queue.queue_id;
    delete from pgque.queue q where q.queue_id = v_queue.queue_id;

    -- Tables that can't go now are found by maint(): they belong to no queue any more.
    perform pgque_internal.drop_events(v_queue.queue_id);
    return 1;
end
$$;

-- Removes a queue that has no subscriptions.
--   x_queue_name  queue; NULL does nothing
--   result        1
create or replace function pgque.drop_queue(x_queue_name text) returns integer
language sql strict
set search_path = pg_catalog, pg_temp
as $$
    select pgque.drop_queue(x_queue_name, false)
$$;

-- Changes one setting of a queue.
--   x_queue_name   queue
--   x_param_name   ticker_max_count, ticker_max_lag, ticker_idle_period, ticker_paused, rotation_period,
--                  external_ticker or max_retries
--   x_param_value  value as text; NULL resets the setting to its default
--   result         1
create or replace function pgque.set_queue_config(x_queue_name text, x_param_name text, x_param_value text)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if x_queue_name is null or x_param_name is null then
        raise exception 'Invalid NULL value: queue and parameter are needed';
    end if;
    perform from pgque.queue q where q.queue_name = x_queue_name;
    if not found then
        raise exception 'No such event queue: %', x_queue_name;
    end if;

    case x_param_name
        when 'ticker_max_count' then
            if x_param_value::int4 <= 0 then
                raise exception 'ticker_max_count must be > 0, not %', x_param_value;
            end if;
            update pgque.queue set queue_ticker_max_count = coalesce(x_param_value::int4, 500)
            where queue_name = x_queue_name;
        when 'ticker_max_lag' then
            perform pgque_internal.check_period(x_param_name, x_param_value);
            update pgque.queue set queue_ticker_max_lag = coalesce(x_param_value::interval, '3 seconds')
            where queue_name = x_queue_name;
        when 'ticker_idle_period' then
            perform pgque_internal.check_period(x_param_name, x_param_value);
            update pgque.queue set queue_ticker_idle_period = coalesce(x_param_value::interval, '1 minute')
            where queue_name = x_queue_name;
        when 'ticker_paused' then
            update pgque.queue set queue_ticker_paused = coalesce(x_param_value::boolean, false)
            where queue_name = x_queue_name;
        when 'rotation_period' then
            perform pgque_internal.check_period(x_param_name, x_param_value);
            update pgque.queue set queue_rotation_period = coalesce(x_param_value::interval, '2 hours')
            where queue_name = x_queue_name;
        when 'external_ticker' then
            update pgque.queue set queue_external_ticker = coalesce(x_param_value::boolean, false)
            where queue_name = x_queue_name;
        when 'max_retries' then
            if x_param_value::int4 < 0 then
                raise exception 'max_retries must be >= 0, not %', x_param_value;
            end if;
            update pgque.queue set queue_max_retries = x_param_value::int4
            where queue_name = x_queue_name;
        else
            raise exception 'cannot change parameter: %', x_param_name
                using hint = 'Possible are ticker_max_count, ticker_max_lag, ticker_idle_period, ticker_paused,'
                             ' rotation_period, external_ticker and max_retries.';
    end case;
    return 1;
end
$$;

-- Refuses a period that is not positive.
create or replace function pgque_internal.check_period(i_param text, i_value text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if i_value::interval <= interval '0' then
        raise exception '% must be > 0, not %', i_param, i_value;
    end if;
end
$$;

-- Kept for callers of the public API: our schema is upgraded by its migrations.
--   result  0
create or replace function pgque.upgrade_schema() returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
    select 0
$$;
