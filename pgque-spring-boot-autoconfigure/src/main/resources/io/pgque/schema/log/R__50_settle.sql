-- Settling: acks, retries and dead letters.
--
-- What this topic guarantees
--   * settle() is one statement: all nacks and the ack, or none of them; its cost grows with the number of
--     nacks, not with their number times the batch.
--   * A batch id that is not open any more settles nothing, whoever holds it.
--   * Every copy of an event that is kept for later is read from the log, not taken from the caller.
--   * Due retries move in one statement, however many; one that can't move is set aside and blocks no other.

-- Ends an open batch; the caller holds the lock of the consumer's row. A group's position moved when the batch
-- was given to its member, who now stands nowhere.
--   i_sub  consumer
--   i_cur  its newest position, with the batch
create or replace function pgque_internal.close_batch(i_sub pgque_internal.sub, i_cur pgque_internal.cursor) returns void
language plpgsql
as $$
begin
    perform pgque_internal.append_cursor(i_sub.sub_no, i_cur.cur_seq,
                                         case when i_sub.sub_role <> 'coop_member' then i_cur.cur_next_tick end, null, null, null);
end
$$;

-- Same, for sessions that are in the middle of the first release's functions when it is upgraded.
create or replace function pgque_internal.close_batch(i_batch pgque_internal.batch) returns void
language plpgsql
as $$
declare
    v_open record := pgque_internal.find_open(i_batch.batch_id, false);
begin
    perform pgque_internal.close_batch(v_open.sub, v_open.cur);
end
$$;

-- Ends a batch for finish_batch and ack.
--   i_shared  whether it may be of a partitioned consumer
create or replace function pgque_internal.finish_open(i_batch_id bigint, i_shared boolean) returns integer
language plpgsql
as $$
declare
    v_open record;
    v_sub  pgque_internal.sub;
begin
    v_open := pgque_internal.find_open(i_batch_id, true);
    v_sub := v_open.sub;
    if v_sub.sub_no is null then
        raise warning 'finish_batch: batch % not found', coalesce(i_batch_id::text, 'NULL');
        return 0;
    end if;
    if v_sub.sub_part is not null and not i_shared then
        raise exception 'batch % is of a partitioned consumer: finish it with ack_partitioned', i_batch_id;
    end if;
    if v_sub.sub_role = 'coop_main' then
        raise exception 'cannot finish cooperative main consumer batch %', i_batch_id;
    end if;
    perform pgque_internal.close_batch(v_sub, v_open.cur);
    return 1;
end
$$;

-- Finishes a batch: the consumer stands at its end tick.
--   x_batch_id  batch
--   result      1; 0 with a warning when it is not open (any more)
create or replace function pgque.finish_batch(x_batch_id bigint) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.finish_open(x_batch_id, true);
end
$$;

-- Same as finish_batch. Finishes the whole batch, however many of its events were received; that of a slot of a
-- partitioned consumer is finished with ack_partitioned.
create or replace function pgque.ack(i_batch_id bigint) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgque_internal.finish_open(i_batch_id, false);
end
$$;

-- An open batch that is to give back an event, its consumer's row locked.
create or replace function pgque_internal.require_batch(i_batch_id bigint) returns pgque_internal.batch
language plpgsql
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.find_batch(i_batch_id, true);
begin
    if v_batch.batch_id is null then
        raise exception 'batch not found: %', coalesce(i_batch_id::text, 'NULL')
            using hint = 'It was finished, or taken over by another owner.';
    end if;
    return v_batch;
end
$$;

-- Gives events of a batch back, in one statement.
--   i_batch    open batch, its consumer's row locked
--   i_ids      events; only what the log holds of them is used
--   i_due      when each is due; i_reasons: why, for the dead letter; i_dead: whether to give it up at once
--   i_limit    give up events that were redelivered so often already
--   matched    events of the batch among i_ids
--   retried    events newly put into the retry queue
--   dead_ids   events given up
create or replace function pgque_internal.give_back(
    i_batch pgque_internal.batch, i_ids bigint[], i_due timestamptz[], i_reasons text[], i_dead boolean[], i_limit int4,
    out matched bigint, out retried bigint, out dead_ids bigint[])
language plpgsql
as $$
begin
    execute format($query$
        with event as materialized (
            select distinct on (e.ev_id) e.*, n.due, n.reason,
                   coalesce(n.dead or coalesce(e.ev_retry, 0) >= $6, false) as dead
            from (%s) e
            join unnest($2, $3, $4, $5) n (id, due, reason, dead) on n.id = e.ev_id
            order by e.ev_id, e.ev_retry desc nulls last
        ),
        dead as (
            insert into pgque.dead_letter (dl_queue_id, dl_consumer_id, dl_reason, ev_id, ev_time, ev_txid, ev_retry,
                                           ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4)
            select ($1).queue_id, ($1).consumer_id, coalesce(reason, 'max retries exceeded'), ev_id, ev_time, ev_txid, ev_retry,
                   ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4
            from event
            where dead
            on conflict on constraint dead_letter_event_uq do nothing
        ),
        retry as (
            insert into pgque.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_txid, ev_owner, ev_retry,
                                           ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4, ev_batch)
            select due, ($1).queue_id, ev_id, ev_time, ev_txid, ($1).sub_id, coalesce(ev_retry, 0) + 1,
                   ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4, ($1).batch_id
            from event
            where not dead
            on conflict on constraint rq_pkey do nothing
            returning 1
        )
        select (select count(*) from event), (select count(*) from retry),
               coalesce((select array_agg(ev_id order by ev_id) from event where dead), '{}')
        $query$, pgque_internal.batch_query(i_batch, null))
    into matched, retried, dead_ids
    using i_batch, i_ids, i_due, i_reasons, i_dead, i_limit;
end
$$;

-- Gives one message back: redelivered later, or a dead letter once it was redelivered the queue's max_retries
-- times. The batch stays open; a repeated nack changes nothing.
--   i_batch_id     open batch; error 'batch not found: …'
--   i_msg          message; only its msg_id counts
--   i_retry_after  delay, rounded to whole seconds
--   i_reason       why, for the dead letter
--   result         1
create or replace function pgque.nack(
    i_batch_id bigint, i_msg pgque.message, i_retry_after interval default '60 seconds', i_reason text default null)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.require_batch(i_batch_id);
begin
    if v_batch.part is not null then
        raise exception 'batch % is of a partitioned consumer: give its messages back with nack_partitioned', i_batch_id;
    end if;
    perform pgque_internal.nack_message(v_batch, i_msg.msg_id, i_retry_after, i_reason);
    return 1;
end
$$;

-- Gives one message of a batch back; see nack.
create or replace function pgque_internal.nack_message(
    i_batch pgque_internal.batch, i_msg_id bigint, i_retry_after interval, i_reason text)
returns void
language plpgsql
as $$
declare
    v_found bigint;
begin
    select g.matched into v_found
    from pgque_internal.give_back(
        i_batch, array[i_msg_id],
        array[now() + make_interval(secs => round(extract(epoch from i_retry_after))::int4)],
        array[i_reason], array[false], i_batch.max_retries) g;
    if v_found = 0 then
        raise exception 'msg_id % not found in batch %', coalesce(i_msg_id::text, 'NULL'), i_batch.batch_id;
    end if;
end
$$;

-- Gives one event back for a redelivery, whatever its number of redeliveries.
--   x_batch_id    open batch
--   x_event_id    event of the batch
--   x_retry_time  when it is due
--   result        1, or 0 when it was given back before; errors 'batch not found: …', 'event not found: …'
create or replace function pgque.event_retry(x_batch_id bigint, x_event_id bigint, x_retry_time timestamptz) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch  pgque_internal.batch := pgque_internal.require_batch(x_batch_id);
    v_result record;
begin
    v_result := pgque_internal.give_back(v_batch, array[x_event_id], array[x_retry_time], array[null::text], array[false], null);
    if v_result.matched = 0 then
        raise exception 'event not found: % in batch %', coalesce(x_event_id::text, 'NULL'), x_batch_id;
    end if;
    return v_result.retried;
end
$$;

-- Same, with a delay in seconds.
create or replace function pgque.event_retry(x_batch_id bigint, x_event_id bigint, x_retry_seconds integer) returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgque.event_retry(x_batch_id, x_event_id, now() + make_interval(secs => x_retry_seconds))
$$;

-- Gives all events of a batch back for a redelivery; the batch stays open.
--   i_batch_id       open batch
--   i_retry_seconds  delay in seconds
--   result           number of events newly given back
create or replace function pgque.batch_retry(i_batch_id bigint, i_retry_seconds integer) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.find_batch(i_batch_id, true);
    v_ids   bigint[];
    v_due   timestamptz := now() + make_interval(secs => i_retry_seconds);
    v_count bigint;
begin
    if v_batch.batch_id is null then
        raise exception 'batch_retry: batch % not found', coalesce(i_batch_id::text, 'NULL');
    end if;
    execute format('select array_agg(ev_id) from (%s) e', pgque_internal.batch_query(v_batch, null)) into v_ids;
    select g.retried into v_count
    from pgque_internal.give_back(
        v_batch, v_ids, array_fill(v_due, array[coalesce(cardinality(v_ids), 0)]), null,
        array_fill(false, array[coalesce(cardinality(v_ids), 0)]), null) g;
    return v_count;
end
$$;

-- Puts an arbitrary event into a consumer's retry queue.
--   x_queue, x_consumer  consumer; error 'consumer not registered: …'
--   x_retry_after        when it is due
--   x_ev_id              event id; NULL takes a new one
--   x_ev_time … x_ev_extra4  columns of the event
--   result               event id
create or replace function pgque.event_retry_raw(
    x_queue text, x_consumer text, x_retry_after timestamptz, x_ev_id bigint, x_ev_time timestamptz, x_ev_retry integer,
    x_ev_type text, x_ev_data text, x_ev_extra1 text, x_ev_extra2 text, x_ev_extra3 text, x_ev_extra4 text)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub record;
    v_id  bigint;
begin
    select s.sub_id, s.sub_queue, q.queue_sequence into v_sub
    from pgque.queue q
    join pgque.consumer c on c.co_name = x_consumer
    join pgque_internal.sub s on s.sub_queue = q.queue_id and s.sub_consumer = c.co_id
    where q.queue_name = x_queue;
    if not found then
        raise exception 'consumer not registered: %/%', coalesce(x_queue, 'NULL'), coalesce(x_consumer, 'NULL');
    end if;
    v_id := coalesce(x_ev_id, nextval(v_sub.queue_sequence));
    insert into pgque.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_owner, ev_retry, ev_type, ev_data,
                                   ev_extra1, ev_extra2, ev_extra3, ev_extra4)
    values (x_retry_after, v_sub.sub_queue, v_id, x_ev_time, v_sub.sub_id, x_ev_retry, x_ev_type, x_ev_data,
            x_ev_extra1, x_ev_extra2, x_ev_extra3, x_ev_extra4);
    return v_id;
end
$$;

-- Settles a batch or the first part of it: gives the named messages back and finishes what is done, in one
-- statement.
--   i_batch_id    batch
--   i_upto        NULL: the whole batch. An event id: the batch up to that event; the rest comes again under a
--                 new batch id and is not counted as failed
--   i_nack_ids    messages to give back; each must be of the part that is settled
--   i_delays      delay of each, to the millisecond and better
--   i_reasons     why, for the dead letter
--   i_dead        whether to give each up at once; otherwise that happens once it was redelivered the queue's
--                 max_retries times
--   settled       false: the batch is not open any more, and nothing was changed
--   retried       number of messages that will come again
--   dead_ids      messages that became dead letters
create or replace function pgque.settle(
    i_batch_id bigint, i_upto bigint, i_nack_ids bigint[], i_delays interval[], i_reasons text[], i_dead boolean[],
    out settled boolean, out retried integer, out dead_ids bigint[])
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_open   record;
    v_sub    pgque_internal.sub;
    v_cursor pgque_internal.cursor;
    v_batch  pgque_internal.batch;
    v_count  int4 := coalesce(cardinality(i_nack_ids), 0);
    v_result record;
begin
    v_open := pgque_internal.find_open(i_batch_id, true);
    v_sub := v_open.sub;
    v_cursor := v_open.cur;
    settled := v_sub.sub_no is not null;
    retried := 0;
    dead_ids := '{}';
    if not settled then
        return;
    end if;
    if v_sub.sub_part is not null and v_sub.sub_instance is null then
        -- Claims hand a batch over under its old id: only the slot's functions know the owner.
        raise exception 'batch % is of a partitioned consumer: finish it with ack_partitioned', i_batch_id;
    end if;

    if v_count <> coalesce(cardinality(i_delays), 0) or v_count <> coalesce(cardinality(i_reasons), 0)
       or v_count <> coalesce(cardinality(i_dead), 0) then
        raise exception 'settle: the arrays of nacks differ in length: %, %, % and %', v_count,
            coalesce(cardinality(i_delays), 0), coalesce(cardinality(i_reasons), 0), coalesce(cardinality(i_dead), 0);
    end if;
    if v_count > 0 then
        if i_upto < any (i_nack_ids) then
            raise exception 'settle: a nack lies behind the settled part, which ends with event %', i_upto;
        end if;
        v_batch := pgque_internal.require_ticks(pgque_internal.batch_of(v_sub, v_cursor));
        v_result := pgque_internal.give_back(
            v_batch, i_nack_ids, array(select clock_timestamp() + d from unnest(i_delays) with ordinality u (d, n) order by n),
            i_reasons, i_dead, v_batch.max_retries);
        if v_result.matched <> (select count(distinct n) + count(*) filter (where n is null) from unnest(i_nack_ids) n) then
            raise exception 'settle: % of % nacks name no event of batch %', v_count - v_result.matched, v_count, i_batch_id
                using hint = 'Nothing was settled.';
        end if;
        retried := v_result.retried;
        dead_ids := v_result.dead_ids;
    end if;

    if i_upto is null then
        perform pgque_internal.close_batch(v_sub, v_cursor);
    else
        perform pgque_internal.append_cursor(v_sub.sub_no, v_cursor.cur_seq, v_cursor.cur_last_tick, v_cursor.cur_next_tick, null,
                                             greatest(i_upto, v_cursor.cur_prefix));
    end if;
end
$$;

-- Puts due retries back into their queues.
--   i_owner, i_id  one of them; NULL: all that are due
--   result         number of events moved
create or replace function pgque_internal.move_retries(i_owner int4, i_id bigint) returns bigint
language plpgsql
as $$
declare
    v_count bigint;
begin
    -- Slots are exchanged after the movers under way, and those after see what is being exchanged.
    lock table pgque.partition_consumer in share mode;
    -- The delete gives the transaction its id before the sequence is drawn from; one value for each row makes
    -- tickers look.
    with open_batch as materialized (
        select s.sub_batch from pgque.subscription s where s.sub_batch is not null
    ),
    changing as materialized (
        -- Slots that are about to be exchanged: their successors get the retries.
        select s.sub_id
        from pgque.partition_consumer p
        join pgque_internal.sub s on s.sub_queue = p.queue_id and s.sub_parts = p.n
        join pgque.consumer c on c.co_id = s.sub_consumer and split_part(c.co_name, '#', 1) = p.co_name
        where p.next_n is not null
    ),
    due as materialized (
        select r.ev_owner, r.ev_id
        from pgque.retry_queue r
        join pgque.queue q on q.queue_id = r.ev_queue
        where r.ev_retry_after <= now()
          and not q.queue_disable_insert
          and (i_id is null or r.ev_owner = i_owner and r.ev_id = i_id)
          and not exists (select from open_batch b where b.sub_batch = r.ev_batch)
          and not exists (select from changing c where c.sub_id = r.ev_owner)
        for update of r skip locked
    ),
    moved as (
        delete from pgque.retry_queue r using due d
        where r.ev_owner = d.ev_owner and r.ev_id = d.ev_id
        returning r.*
    ),
    appended as (
        insert into pgque.event (ev_id, ev_time, ev_txid, ev_owner, ev_retry, ev_type, ev_data,
                                 ev_extra1, ev_extra2, ev_extra3, ev_extra4, ev_queue, ev_slot)
        select m.ev_id, m.ev_time, pg_current_xact_id(), m.ev_owner, m.ev_retry, m.ev_type, m.ev_data,
               m.ev_extra1, m.ev_extra2, m.ev_extra3, m.ev_extra4, m.ev_queue, q.queue_cur_table
        from moved m
        join pgque.queue q on q.queue_id = m.ev_queue
        returning ev_queue
    )
    select count(nextval(q.queue_sequence)) into v_count
    from appended a
    join pgque.queue q on q.queue_id = a.ev_queue;
    return v_count;
end
$$;

-- Puts all due retries back into their queues, to be delivered with the next tick. One that can't be moved is
-- set aside for ten minutes, with the error in its row and a warning.
--   result  number of events moved
create or replace function pgque.maint_retry_events() returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event record;
    v_count bigint := 0;
begin
    if not exists (select from pgque.retry_queue r where r.ev_retry_after <= now()) then
        return 0;
    end if;
    begin
        return pgque_internal.move_retries(null, null);
    exception
        when others then
            raise warning 'retries could not be moved together, moving one by one: %', sqlerrm;
    end;
    for v_event in
        select r.ev_owner, r.ev_id from pgque.retry_queue r where r.ev_retry_after <= now() order by r.ev_retry_after
    loop
        begin
            v_count := v_count + pgque_internal.move_retries(v_event.ev_owner, v_event.ev_id);
        exception
            when others then
                raise warning 'retry of event % for subscription % set aside: %', v_event.ev_id, v_event.ev_owner, sqlerrm;
                update pgque.retry_queue r
                set ev_error = sqlerrm, ev_retry_after = now() + interval '10 minutes'
                where r.ev_owner = v_event.ev_owner and r.ev_id = v_event.ev_id;
        end;
    end loop;
    return v_count;
end
$$;

-- ---------------------------------------------------------------------------------------------------
-- Dead letters
-- ---------------------------------------------------------------------------------------------------

-- Records a dead letter of a batch; repeated, it changes nothing.
--   i_batch_id           batch; error 'batch not found: …'
--   i_event_id … i_ev_*  the event
--   result               1
create or replace function pgque.event_dead(
    i_batch_id bigint, i_event_id bigint, i_reason text, i_ev_time timestamptz, i_ev_txid xid8, i_ev_retry int4,
    i_ev_type text, i_ev_data text, i_ev_extra1 text default null, i_ev_extra2 text default null,
    i_ev_extra3 text default null, i_ev_extra4 text default null)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.require_batch(i_batch_id);
begin
    insert into pgque.dead_letter (dl_queue_id, dl_consumer_id, dl_reason, ev_id, ev_time, ev_txid, ev_retry,
                                   ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4)
    values (v_batch.queue_id, v_batch.consumer_id, i_reason, i_event_id, i_ev_time, i_ev_txid, i_ev_retry,
            i_ev_type, i_ev_data, i_ev_extra1, i_ev_extra2, i_ev_extra3, i_ev_extra4)
    on conflict on constraint dead_letter_event_uq do nothing;
    return 1;
end
$$;

-- Dead letters of a queue, newest first.
--   i_queue_name   queue; an unknown one has none
--   i_limit_count  most rows
create or replace function pgque.dlq_inspect(i_queue_name text, i_limit_count integer default 100)
returns setof pgque.dead_letter
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select d.*
    from pgque.dead_letter d
    join pgque.queue q on q.queue_id = d.dl_queue_id
    where q.queue_name = i_queue_name
    order by d.dl_time desc, d.dl_id desc
    limit i_limit_count
$$;

-- Dead letters with the names of queue and consumer, newest first.
--   i_queue_name   queue; NULL: of all queues
--   i_max_rows     most rows
create or replace function pgque.dead_letters(i_queue_name text, i_max_rows integer)
returns table (dl_id bigint, queue_name text, consumer_name text, dl_time timestamptz, dl_reason text, ev_id bigint,
               ev_time timestamptz, ev_retry int4, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text,
               ev_extra3 text, ev_extra4 text)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select d.dl_id, q.queue_name, c.co_name, d.dl_time, d.dl_reason, d.ev_id, d.ev_time, d.ev_retry, d.ev_type, d.ev_data,
           d.ev_extra1, d.ev_extra2, d.ev_extra3, d.ev_extra4
    from pgque.dead_letter d
    join pgque.queue q on q.queue_id = d.dl_queue_id
    join pgque.consumer c on c.co_id = d.dl_consumer_id
    where i_queue_name is null or q.queue_name = i_queue_name
    order by d.dl_time desc, d.dl_id desc
    limit i_max_rows
$$;

-- Takes a dead letter out, to be sent again; a concurrent taker waits and finds none.
create or replace function pgque_internal.take_dead_letter(i_dead_letter_id bigint) returns pgque.dead_letter
language plpgsql
as $$
declare
    v_letter pgque.dead_letter;
begin
    delete from pgque.dead_letter d where d.dl_id = i_dead_letter_id returning d.* into v_letter;
    if not found then
        raise exception 'dead letter entry not found: %', coalesce(i_dead_letter_id::text, 'NULL');
    end if;
    return v_letter;
end
$$;

-- Sends a dead letter again, as a new event for all consumers of its queue, and removes it.
--   i_dead_letter_id  dead letter
--   result            id of the new event; error 'dead letter entry not found: …'
create or replace function pgque.dlq_replay(i_dead_letter_id bigint) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_letter pgque.dead_letter := pgque_internal.take_dead_letter(i_dead_letter_id);
begin
    return pgque.insert_event(
        (select q.queue_name from pgque.queue q where q.queue_id = v_letter.dl_queue_id),
        v_letter.ev_type, v_letter.ev_data, v_letter.ev_extra1, v_letter.ev_extra2, v_letter.ev_extra3, v_letter.ev_extra4);
end
$$;

-- Delivers a dead letter again to the consumer that gave it up, and to no other, and removes it. The event
-- keeps its id and time; its redeliveries are counted anew.
--   i_dead_letter_id  dead letter
--   result            event id; errors 'dead letter entry not found: …', 'consumer not registered: …'
create or replace function pgque.dlq_redeliver(i_dead_letter_id bigint) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_letter   pgque.dead_letter := pgque_internal.take_dead_letter(i_dead_letter_id);
    v_queue    text;
    v_consumer text;
    v_owner    int4;
begin
    select q.queue_name into v_queue from pgque.queue q where q.queue_id = v_letter.dl_queue_id;
    select pgque_internal.successor(v_letter.dl_queue_id, c.co_name, v_letter.ev_extra1) into v_consumer
    from pgque.consumer c where c.co_id = v_letter.dl_consumer_id;
    select s.sub_id into v_owner
    from pgque_internal.sub s
    join pgque.consumer c on c.co_id = s.sub_consumer
    where s.sub_queue = v_letter.dl_queue_id and c.co_name = v_consumer
    for key share of s;
    if not found then
        raise exception 'consumer not registered: %/%', v_queue, v_consumer
            using hint = 'Subscribe it, or replay the dead letter to all consumers with pgque.dlq_replay.';
    end if;
    return pgque.insert_event_raw(v_queue, v_letter.ev_id, v_letter.ev_time, v_owner, null::integer, v_letter.ev_type,
                                  v_letter.ev_data, v_letter.ev_extra1, v_letter.ev_extra2, v_letter.ev_extra3,
                                  v_letter.ev_extra4);
end
$$;

-- Name under which a consumer reads a key today, whatever number of slots it had when the name was noted.
create or replace function pgque_internal.successor(i_queue_id int4, i_consumer text, i_key text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when exists (select from pgque_internal.sub s join pgque.consumer c on c.co_id = s.sub_consumer
                     where s.sub_queue = i_queue_id and c.co_name = i_consumer) then i_consumer
        else coalesce(
            (select p.co_name || '#' || pgque.slot_of(i_key, p.n) || '/' || p.n
             from pgque.partition_consumer p
             where p.queue_id = i_queue_id and p.co_name = split_part(i_consumer, '#', 1)),
            split_part(i_consumer, '#', 1)) end
$$;

-- Takes all dead letters of a queue that are there now, each on its own, passing over those that others work on.
--   i_redeliver  whether to deliver each to the consumer that gave it up; otherwise to all, as a new event
create or replace function pgque_internal.replay_all(
    i_queue_name text, i_redeliver boolean, out replayed bigint, out failed bigint, out first_error text)
returns record
language plpgsql
as $$
declare
    v_id bigint;
begin
    replayed := 0;
    failed := 0;
    for v_id in
        select d.dl_id
        from pgque.dead_letter d
        join pgque.queue q on q.queue_id = d.dl_queue_id
        where q.queue_name = i_queue_name
        order by d.dl_id
        for update of d skip locked
    loop
        begin
            if i_redeliver then
                perform pgque.dlq_redeliver(v_id);
            else
                perform pgque.dlq_replay(v_id);
            end if;
            replayed := replayed + 1;
        exception
            when others then
                failed := failed + 1;
                first_error := coalesce(first_error, sqlerrm);
        end;
    end loop;
end
$$;

-- Sends all dead letters of a queue again, each on its own, as new events for all consumers, passing over those that
-- others work on.
--   i_queue_name  queue
--   replayed      number sent
--   failed        number that could not be sent, and stay
--   first_error   why the first of them could not
create or replace function pgque.dlq_replay_all(
    i_queue_name text, out replayed bigint, out failed bigint, out first_error text)
returns record
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select * from pgque_internal.replay_all(i_queue_name, false)
$$;

-- Delivers all dead letters of a queue again, each on its own and to the consumer that gave it up, passing over those
-- that others work on.
--   i_queue_name, replayed, failed, first_error  as of dlq_replay_all
create or replace function pgque.dlq_redeliver_all(
    i_queue_name text, out replayed bigint, out failed bigint, out first_error text)
returns record
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select * from pgque_internal.replay_all(i_queue_name, true)
$$;

-- Removes old dead letters.
--   i_queue_name  queue
--   i_older_than  age from which on
--   result        number removed
create or replace function pgque.dlq_purge(i_queue_name text, i_older_than interval default '30 days') returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_count integer;
begin
    delete from pgque.dead_letter d
    using pgque.queue q
    where q.queue_id = d.dl_queue_id and q.queue_name = i_queue_name and d.dl_time < now() - i_older_than;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
