-- Inbox: which messages a consumer has handled, noted in the transaction that did what they are about.
--
-- What this topic guarantees
--   * Of any number of transactions that note a message of a consumer, one succeeds; the others wait for its end,
--     and are told that it was handled, or succeed if it was rolled back. They have to be READ COMMITTED.
--   * A note is kept for the retention at least, and half as long again at most. Space comes back by truncating
--     one of three tables at a time; no row is deleted.
--   * Turning the tables waits for nobody.

-- Notes that a consumer has handled a message.
--   i_queue     queue; error 'queue not found: …'
--   i_consumer  consumer; error 'consumer not registered: …'
--   i_msg_id    message
--   result      true: noted now; false: it was handled before
create or replace function pgque.inbox_add(i_queue text, i_consumer text, i_msg_id bigint) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue    int4;
    v_consumer int4;
    v_slot     int2;
begin
    perform pgque_internal.require_read_committed('inbox_add');
    select q.queue_id into v_queue from pgque.queue q where q.queue_name = i_queue;
    if not found then
        raise exception 'queue not found: %', coalesce(i_queue, 'NULL');
    end if;
    select c.co_id into v_consumer from pgque.consumer c where c.co_name = i_consumer;
    if not found then
        raise exception 'consumer not registered: %', coalesce(i_consumer, 'NULL');
    end if;
    -- The tables may turn between two transactions, so that no index sees both.
    perform pg_advisory_xact_lock(hashtextextended(format('pgque inbox %s %s %s', v_queue, v_consumer, i_msg_id), 0));
    perform from pgque_internal.inbox_0 i where i.queue_id = v_queue and i.consumer_id = v_consumer and i.msg_id = i_msg_id
    union all
    select from pgque_internal.inbox_1 i where i.queue_id = v_queue and i.consumer_id = v_consumer and i.msg_id = i_msg_id
    union all
    select from pgque_internal.inbox_2 i where i.queue_id = v_queue and i.consumer_id = v_consumer and i.msg_id = i_msg_id;
    if found then
        return false;
    end if;
    select r.inbox_slot into v_slot from pgque_internal.inbox_ring r;
    if v_slot = 0 then
        insert into pgque_internal.inbox_0 (queue_id, consumer_id, msg_id) values (v_queue, v_consumer, i_msg_id);
    elsif v_slot = 1 then
        insert into pgque_internal.inbox_1 (queue_id, consumer_id, msg_id) values (v_queue, v_consumer, i_msg_id);
    else
        insert into pgque_internal.inbox_2 (queue_id, consumer_id, msg_id) values (v_queue, v_consumer, i_msg_id);
    end if;
    return true;
end
$$;

-- Says how long the inbox remembers what was handled.
--   i_retention  shortest time; error 'retention must be a positive interval'
--   result       the retention before
create or replace function pgque.set_inbox_retention(i_retention interval) returns interval
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_before interval;
begin
    if i_retention is null or i_retention <= interval '0' then
        raise exception 'retention must be a positive interval';
    end if;
    select r.inbox_retention into v_before from pgque_internal.inbox_ring r;
    if v_before <> i_retention then
        update pgque_internal.inbox_ring r set inbox_retention = i_retention;
    end if;
    return v_before;
end
$$;

-- Turns the inbox when the current table has been in use for half the retention: the oldest is emptied and becomes
-- the current one. A step of maint().
--   result  number of tables emptied
create or replace function pgque_internal.turn_inbox() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_slot int2;
begin
    select (r.inbox_slot + 1) % 3 into v_slot from pgque_internal.inbox_ring r
    where r.inbox_switched <= clock_timestamp() - r.inbox_retention / 2
    for no key update skip locked;
    if not found then
        return 0;
    end if;
    begin
        execute format('lock table pgque_internal.%I in access exclusive mode nowait', 'inbox_' || v_slot);
    exception
        when lock_not_available then
            -- Somebody looks into it at the moment.
            return 0;
    end;
    execute format('truncate pgque_internal.%I', 'inbox_' || v_slot);
    update pgque_internal.inbox_ring r set inbox_slot = v_slot, inbox_switched = clock_timestamp();
    return 1;
end
$$;
