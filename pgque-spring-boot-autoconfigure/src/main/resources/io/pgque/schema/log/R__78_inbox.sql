-- Inbox: which messages a consumer has handled, noted in the transaction that did what they are about.
--
-- What this topic guarantees
--   * Of any number of transactions that note a message of a consumer, one succeeds; the others wait for its end,
--     and are told that it was handled, or succeed if it was rolled back. They have to be READ COMMITTED.
--   * A note is kept for the retention at least, and a little more than twice as long at most. Space comes back by
--     truncating one of three tables at a time; no row is deleted.
--   * Turning the tables waits for nobody, and nobody waits for it. One table takes notes, the one before is looked
--     into as well, and the third is nobody's, so that it can be emptied however busy the inbox is.

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
    select r.inbox_slot into v_slot from pgque_internal.inbox_ring r;
    -- A statement for each, for the third table must not even be locked.
    if v_slot = 0 then
        perform from pgque_internal.inbox_2 i where i.queue_id = v_queue and i.consumer_id = v_consumer and i.msg_id = i_msg_id;
        if found then
            return false;
        end if;
        insert into pgque_internal.inbox_0 (queue_id, consumer_id, msg_id) values (v_queue, v_consumer, i_msg_id)
        on conflict do nothing;
    elsif v_slot = 1 then
        perform from pgque_internal.inbox_0 i where i.queue_id = v_queue and i.consumer_id = v_consumer and i.msg_id = i_msg_id;
        if found then
            return false;
        end if;
        insert into pgque_internal.inbox_1 (queue_id, consumer_id, msg_id) values (v_queue, v_consumer, i_msg_id)
        on conflict do nothing;
    else
        perform from pgque_internal.inbox_1 i where i.queue_id = v_queue and i.consumer_id = v_consumer and i.msg_id = i_msg_id;
        if found then
            return false;
        end if;
        insert into pgque_internal.inbox_2 (queue_id, consumer_id, msg_id) values (v_queue, v_consumer, i_msg_id)
        on conflict do nothing;
    end if;
    return found;
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

-- Empties the table that nobody looks into any more, and turns the inbox when the current table has been in use for
-- the retention: the empty one becomes the current one. A step of maint().
--   result  number of tables emptied
create or replace function pgque_internal.turn_inbox() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ring    pgque_internal.inbox_ring;
    v_slot    int2;
    v_used    boolean;
    v_emptied integer := 0;
begin
    select * into v_ring from pgque_internal.inbox_ring r for no key update skip locked;
    if not found then
        return 0;
    end if;
    v_slot := (v_ring.inbox_slot + 1) % 3;
    execute format('select exists (select from pgque_internal.%I)', 'inbox_' || v_slot) into v_used;
    if v_used then
        begin
            execute format('lock table pgque_internal.%I in access exclusive mode nowait', 'inbox_' || v_slot);
        exception
            when lock_not_available then
                -- A transaction from before the last turn. No new one comes, so that this ends with those.
                return 0;
        end;
        execute format('truncate pgque_internal.%I', 'inbox_' || v_slot);
        v_emptied := 1;
    end if;
    if v_ring.inbox_switched <= clock_timestamp() - v_ring.inbox_retention then
        update pgque_internal.inbox_ring r set inbox_slot = v_slot, inbox_switched = clock_timestamp();
    end if;
    return v_emptied;
end
$$;
