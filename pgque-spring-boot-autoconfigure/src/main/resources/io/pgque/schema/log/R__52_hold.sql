-- Keys in order over redeliveries: later messages of a key wait until an earlier one that has failed is done.
--
-- What this topic guarantees
--   * A message that fails gets a place in the order of its key, and so does each message of the key that comes after
--     it; a message without a place comes after all that have one. Whoever handles only messages that have no other
--     before them handles each key in order, whatever comes again when.
--   * Places are given and taken away by the statement that settles, so that a crash leaves nothing behind. Only
--     settle_holding() does: who settles by other functions handles what comes, and keeps no order.
--   * A message that is held back is not counted as failed. The first ones of a key come again with the one they wait
--     for. Those further back are parked: the settlements that take places away let them follow, twice as many as went
--     before while nothing fails. So a failure has a bounded number of messages written again, however many wait.
--   * Whatever forgets to let them follow, a parked message comes by itself a minute after the one it was parked behind.
--   * A place whose message doesn't come any more, since another function has settled it or the consumer was moved,
--     keeps its key waiting until the next instance takes the lease, the next move, or maint() after an hour at most.
--   * Without failures nothing is written here.

-- How many messages of a key come again with the first one, at least. So many are written again for each failure; fewer
-- would need more rounds until those that wait follow fast.
create or replace function pgque_internal.hold_window() returns integer
language sql immutable parallel safe
as $$
    select 20
$$;

-- The first messages of a key, in their order.
--   i_sub    consumer; i_key: key
--   i_limit  most rows
--   delayed  whether it has failed itself, and comes after a delay of its own
create or replace function pgque_internal.first_held(i_sub bigint, i_key text, i_limit bigint)
returns table (msg_id bigint, place bigint, delayed boolean)
language plpgsql stable rows 20
-- Else all of a key are read and sorted, where its number is underrated.
set enable_bitmapscan = off
as $$
begin
    return query
        select h.hold_msg, h.hold_place, h.hold_delayed
        from pgque_internal.hold h
        where h.hold_sub = i_sub and hashtextextended(h.hold_key, 0) = hashtextextended(i_key, 0) and h.hold_key = i_key
        order by h.hold_place
        limit i_limit;
end
$$;

-- Where messages of a batch stand in the order of their keys.
--   i_batch_id  batch; error 'batch not found: …'
--   i_msg_ids   messages
--   i_keys      their keys
--   msg_id      message, one row for each whose key has places
--   place       its own place; NULL: it has none, and comes last
--   after       place of the one before it; NULL: it is the first
create or replace function pgque.key_places(i_batch_id bigint, i_msg_ids bigint[], i_keys text[])
returns table (msg_id bigint, place bigint, after bigint)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sub bigint;
begin
    select c.cur_sub into v_sub from pgque_internal.cursor c where c.cur_batch = i_batch_id limit 1;
    if not found then
        raise exception 'batch not found: %', coalesce(i_batch_id::text, 'NULL');
    end if;
    if not exists (select from pgque_internal.hold h where h.hold_sub = v_sub) then
        return;
    end if;
    return query
        select m.id, own.hold_place, before.hold_place
        from unnest(i_msg_ids, i_keys) m (id, key)
        left join pgque_internal.hold own on own.hold_sub = v_sub and own.hold_msg = m.id
        left join lateral (
            select h.hold_place from pgque_internal.hold h
            where h.hold_sub = v_sub
              and hashtextextended(h.hold_key, 0) = hashtextextended(m.key, 0) and h.hold_key = m.key
              and h.hold_place < coalesce(own.hold_place, 9223372036854775807)
            order by h.hold_place desc
            limit 1
        ) before on true
        where own.hold_place is not null or before.hold_place is not null;
end
$$;

-- Settles like settle(), and keeps the order of keys: notes which messages come again, and gives those back that wait
-- for them.
--   i_batch_id … i_dead  as of settle
--   i_held_ids   messages to hold back; each must be of the part that is settled and have a key. They are not counted
--                as failed, and are due with the first of their key, or parked far behind it
--   i_done_ids   messages of the part that is settled that key_places() gave a place for, unless they are held back;
--                those that don't come again lose it
--   settled, retried, dead_ids  as of settle; what is held back is not counted
create or replace function pgque.settle_holding(
    i_batch_id bigint, i_upto bigint, i_nack_ids bigint[], i_delays interval[], i_reasons text[], i_dead boolean[],
    i_held_ids bigint[], i_done_ids bigint[], out settled boolean, out retried integer, out dead_ids bigint[])
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.find_batch(i_batch_id, true);
    v_keys  text[];
    v_done  bigint[];
begin
    if v_batch.role <> 'normal' then
        raise exception 'settle_holding: consumer % on % is shared by a cooperative group, which has no order to keep',
            v_batch.consumer_name, v_batch.queue_name
            using hint = 'Settle its batches with pgque.settle.';
    end if;
    if i_upto < any (i_held_ids) then
        raise exception 'settle_holding: a message to hold back lies behind the settled part, which ends with event %', i_upto;
    end if;
    select s.settled, s.retried, s.dead_ids into settled, retried, dead_ids
    from pgque.settle(i_batch_id, i_upto, i_nack_ids, i_delays, i_reasons, i_dead) s;
    if not settled then
        return;
    end if;
    with done as (
        delete from pgque_internal.hold h
        using unnest(i_done_ids) d (id)
        where h.hold_sub = v_batch.sub_no and h.hold_msg = d.id
          and not exists (select from pgque.retry_queue r where r.ev_owner = v_batch.sub_id and r.ev_id = d.id)
        returning h.hold_key
    )
    select array_agg(k.hold_key), array_agg(k.done) into v_keys, v_done
    from (select d.hold_key, count(*) as done from done d group by d.hold_key) k;
    -- In the order of the batch: places are drawn from the sorted rows.
    insert into pgque_internal.hold as h (hold_sub, hold_msg, hold_key, hold_delayed)
    select v_batch.sub_no, r.ev_id, r.ev_extra1, true
    from unnest(i_nack_ids) n (id)
    join pgque.retry_queue r on r.ev_owner = v_batch.sub_id and r.ev_id = n.id
    where r.ev_extra1 is not null
    order by r.ev_id
    on conflict on constraint hold_pkey do update set hold_delayed = true where not h.hold_delayed;
    if cardinality(i_held_ids) > 0 then
        perform pgque_internal.hold_back(v_batch, i_held_ids);
    end if;
    if v_keys is not null then
        perform pgque_internal.release_held(v_batch.sub_no, v_batch.sub_id, v_keys, v_done);
    end if;
end
$$;

-- Gives messages of a batch back that wait for others of their keys, which have their places already. Those among the
-- first of their key are due with its first one. The others are parked: they are due a minute later, unless
-- release_held() lets them come before.
--   i_batch  batch that was just settled, its consumer's row locked
--   i_ids    messages; only what the log holds of them is used
create or replace function pgque_internal.hold_back(i_batch pgque_internal.batch, i_ids bigint[]) returns void
language plpgsql
as $$
declare
    v_count bigint;
begin
    execute format($query$
        with event as materialized (
            select distinct on (e.ev_id) e.*
            from (%s) e
            join unnest($2) n (id) on n.id = e.ev_id
            where e.ev_extra1 is not null
            order by e.ev_id, e.ev_retry desc nulls last
        ),
        key as materialized (
            -- The first of a key may lie in the log already: then this is the time.
            select k.ev_extra1, coalesce(r.ev_retry_after, clock_timestamp()) as due, w.places, w.last
            from (select distinct ev_extra1 from event) k
            cross join lateral (
                select count(*) as places, (array_agg(f.msg_id order by f.place))[1] as first, max(f.place) as last
                from pgque_internal.first_held(($1).sub_no, k.ev_extra1, pgque_internal.hold_window()) f
            ) w
            left join pgque.retry_queue r on r.ev_owner = ($1).sub_id and r.ev_id = w.first
        ),
        held as (
            -- Those without a place get the ones behind all others, in this order.
            select e.*, k.due, coalesce(
                       h.hold_place <= k.last,
                       k.places + row_number() over (partition by e.ev_extra1, h.hold_place is null order by e.ev_id)
                           <= pgque_internal.hold_window()) as near
            from event e
            join key k on k.ev_extra1 = e.ev_extra1
            left join pgque_internal.hold h on h.hold_sub = ($1).sub_no and h.hold_msg = e.ev_id
        ),
        retry as (
            insert into pgque.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_txid, ev_owner, ev_retry,
                                           ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4, ev_batch)
            select case when e.near then e.due else greatest(e.due, clock_timestamp()) + interval '1 minute' end,
                   ($1).queue_id, e.ev_id, e.ev_time, e.ev_txid, ($1).sub_id, e.ev_retry,
                   e.ev_type, e.ev_data, e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4, ($1).batch_id
            from held e
            on conflict on constraint rq_pkey do nothing
        ),
        place as (
            insert into pgque_internal.hold as h (hold_sub, hold_msg, hold_key, hold_delayed)
            select ($1).sub_no, e.ev_id, e.ev_extra1, false
            from event e
            order by e.ev_id
            on conflict on constraint hold_pkey do update set hold_delayed = false where h.hold_delayed
        )
        select count(*) from event
        $query$, pgque_internal.batch_query(i_batch, null))
    into v_count
    using i_batch, i_ids;
    if v_count <> (select count(distinct n) + count(*) filter (where n is null) from unnest(i_ids) n) then
        raise exception 'settle_holding: of the messages to hold back, % are not of batch %, or have no key',
            cardinality(i_ids) - v_count, i_batch.batch_id
            using hint = 'Nothing was settled.';
    end if;
end
$$;

-- Lets messages follow that were held back, after places of their keys were taken away: twice as many as those, so that
-- their number grows while nothing fails. They are due with the first of their key when that has failed itself and
-- waits, and now otherwise. None comes later than it would, and what has failed itself keeps its delay.
--   i_sub, i_sub_id  consumer, its row locked
--   i_keys           keys, each once
--   i_done           number of places of each that were taken away
create or replace function pgque_internal.release_held(i_sub bigint, i_sub_id int4, i_keys text[], i_done bigint[]) returns void
language plpgsql
as $$
begin
    -- Movers of retries lock only what is due, which has no need of this. So a row that one of them has locked since it
    -- was read here is on its way: it is passed over, nobody waits for the other, and nothing is lost. What somebody
    -- else has locked comes by itself.
    with key as materialized (
        select k.key, greatest(pgque_internal.hold_window(), 2 * k.done) as size,
               coalesce(r.ev_retry_after, clock_timestamp()) as due
        from unnest(i_keys, i_done) k (key, done)
        cross join lateral pgque_internal.first_held(i_sub, k.key, 1) f
        left join pgque.retry_queue r on f.delayed and r.ev_owner = i_sub_id and r.ev_id = f.msg_id
    ),
    next as materialized (
        select f.msg_id, k.due
        from key k
        cross join lateral pgque_internal.first_held(i_sub, k.key, k.size) f
        where not f.delayed
    ),
    waiting as materialized (
        select r.ev_id, n.due
        from next n
        cross join lateral (
            select r.ev_id from pgque.retry_queue r
            where r.ev_owner = i_sub_id and r.ev_id = n.msg_id and r.ev_retry_after > n.due and r.ev_error is null
            limit 1
            for no key update skip locked
        ) r
    )
    update pgque.retry_queue r set ev_retry_after = w.due
    from waiting w
    where r.ev_owner = i_sub_id and r.ev_id = w.ev_id;
end
$$;

-- Takes the places away whose messages neither wait to come again nor lie in the log before their consumer; the caller
-- has locked its row. Those behind them follow.
--   result  number of places
create or replace function pgque_internal.drop_stale_holds(i_sub bigint) returns integer
language plpgsql
as $$
declare
    v_sub    pgque_internal.sub;
    v_cursor pgque_internal.cursor;
    v_leaf   text;
    v_parts  text[] := '{}';
    v_keys   text[];
    v_done   bigint[];
begin
    if not exists (select from pgque_internal.hold h where h.hold_sub = i_sub) then
        return 0;
    end if;
    select * into v_sub from pgque_internal.sub s where s.sub_no = i_sub;
    v_cursor := pgque_internal.newest_cursor(i_sub);
    foreach v_leaf in array pgque_internal.leaves((select q.queue_data_pfx from pgque.queue q where q.queue_id = v_sub.sub_queue)) loop
        v_parts := v_parts || format(
            'select e.ev_id from %s e where e.ev_owner = $2 and e.ev_txid >= pg_snapshot_xmin($3)'
            ' and not pg_visible_in_snapshot(e.ev_txid, $3)'
            ' and ($4 is null or e.ev_id > $4 or not pg_visible_in_snapshot(e.ev_txid, $5))', v_leaf);
    end loop;
    -- In one statement, so that none is missed while it moves from one place to the other.
    execute format($query$
        with waiting as materialized (
            select h.hold_msg from pgque_internal.hold h
            where h.hold_sub = $1
              and not exists (select from pgque.retry_queue r where r.ev_owner = $2 and r.ev_id = h.hold_msg)
        ),
        stale as (
            delete from pgque_internal.hold h
            using waiting w
            where h.hold_sub = $1 and h.hold_msg = w.hold_msg
              and not exists (select from (%s) e where e.ev_id = w.hold_msg)
            returning h.hold_key
        )
        select array_agg(k.hold_key), array_agg(k.done)
        from (select s.hold_key, count(*) as done from stale s group by s.hold_key) k
        $query$, array_to_string(v_parts, ' union all '))
    into v_keys, v_done
    using i_sub, v_sub.sub_id, (pgque_internal.tick_at(v_sub, v_cursor.cur_last_tick)).tick_snapshot, v_cursor.cur_prefix,
        case when v_cursor.cur_prefix is not null
             then (pgque_internal.tick_at(v_sub, v_cursor.cur_next_tick)).tick_snapshot end;
    if v_keys is not null then
        perform pgque_internal.release_held(i_sub, v_sub.sub_id, v_keys, v_done);
    end if;
    update pgque_internal.hold h set hold_checked = now()
    where h.hold_sub = i_sub and h.hold_checked < now() - interval '1 hour';
    return (select coalesce(sum(d), 0) from unnest(v_done) d);
end
$$;

-- Looks after places that are older than an hour. A step of maint().
--   result  number of places taken away
create or replace function pgque_internal.check_holds() returns integer
language plpgsql
as $$
declare
    v_sub   bigint;
    v_count integer := 0;
begin
    for v_sub in
        select s.sub_no
        from pgque_internal.sub s
        where s.sub_no in (select h.hold_sub from pgque_internal.hold h where h.hold_checked < now() - interval '1 hour')
        for no key update of s skip locked
    loop
        v_count := v_count + pgque_internal.drop_stale_holds(v_sub);
    end loop;
    return v_count;
end
$$;

-- Keys that wait, each with the message that all others of it wait for.
--   i_queue_name   queue; NULL: of all queues
--   consumer_name  consumer; of a partitioned one its own name, not that of a slot
--   msg_id         first message
--   due            when it comes again; NULL: it is on its way
--   waiting        number of messages behind it that were held back so far
create or replace function pgque.held_keys(i_queue_name text default null)
returns table (queue_name text, consumer_name text, key text, msg_id bigint, due timestamptz, waiting bigint)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select q.queue_name, split_part(c.co_name, '#', 1), k.hold_key, k.first, r.ev_retry_after, k.messages - 1
    from (
        select h.hold_sub, h.hold_key, count(*) as messages, (array_agg(h.hold_msg order by h.hold_place))[1] as first
        from pgque_internal.hold h
        group by h.hold_sub, h.hold_key
    ) k
    join pgque_internal.sub s on s.sub_no = k.hold_sub
    join pgque.queue q on q.queue_id = s.sub_queue
    join pgque.consumer c on c.co_id = s.sub_consumer
    left join pgque.retry_queue r on r.ev_owner = s.sub_id and r.ev_id = k.first
    where i_queue_name is null or q.queue_name = i_queue_name
    order by q.queue_name, c.co_name, k.hold_key
$$;
