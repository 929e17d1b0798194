-- Figures for dashboards, alerts and metrics.
--
-- What this topic guarantees
--   * Reading for its readers only; nothing here locks a row or writes one.
--   * One pass over queues and subscriptions, an index look-up for each tick that is needed, never a walk over
--     events; counts of dead letters and retries read those of the queues in question.
--   * A member of a cooperative group that is between batches stands nowhere, and is neither late nor stuck.
--   * Lag is the age of a tick, as a ticker makes them that ticks idle queues too. tick_now() leaves those alone;
--     there the truth is in consumer_backlog().

-- Figures of all queues, by name.
--   depth           events between the slowest consumer and the newest tick, by the sequence
--   oldest_msg_age  age of the tick at which the slowest consumer stands
--   consumers       subscriptions
--   events_per_sec  between the two newest ticks, by the sequence; NULL when there are no two with consecutive ids
--   rotation_age    time since the last rotation
--   dlq_count       dead letters
create or replace function pgque.queue_stats()
returns table (queue_name text, queue_id int4, depth bigint, oldest_msg_age interval, consumers int4, events_per_sec numeric,
               cur_table int4, rotation_age interval, rotation_period interval, ticker_paused boolean,
               last_tick_time timestamptz, last_tick_id bigint, dlq_count bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    with slowest as materialized (
        select s.sub_queue, count(*)::int4 as consumers, min(s.sub_last_tick) as tick_id
        from pgque.subscription s
        group by s.sub_queue
    ),
    dead as materialized (
        select d.dl_queue_id, count(*) as letters from pgque.dead_letter d group by d.dl_queue_id
    )
    select q.queue_name, q.queue_id, coalesce(greatest(t.tick_event_seq - o.tick_event_seq, 0), 0), now() - o.tick_time,
           coalesce(s.consumers, 0),
           round((t.tick_event_seq - p.tick_event_seq) / nullif(extract(epoch from t.tick_time - p.tick_time)::numeric, 0), 3),
           q.queue_cur_table, now() - q.queue_switch_time, q.queue_rotation_period, q.queue_ticker_paused,
           t.tick_time, t.tick_id, coalesce(d.letters, 0)
    from pgque.queue q
    left join slowest s on s.sub_queue = q.queue_id
    left join dead d on d.dl_queue_id = q.queue_id
    left join lateral (
        select * from pgque.tick t where t.tick_queue = q.queue_id order by t.tick_id desc limit 1
    ) t on true
    left join lateral (
        select * from pgque.tick p where p.tick_queue = q.queue_id and p.tick_id = t.tick_id - 1 limit 1
    ) p on true
    left join lateral (
        select * from pgque.tick o where o.tick_queue = q.queue_id and o.tick_id = s.tick_id limit 1
    ) o on true
    order by q.queue_name
$$;

-- Where consumers stand, by queue and name; rows of the functions below.
--   i_queue_name  queue; NULL: all
--   role          of the subscription
--   tick_time     time of the tick at which it stands; NULL when that is unknown
--   first_seq, last_seq, newest_seq  event sequence there, at the end of the open batch, and at the queue's newest tick
create or replace function pgque_internal.consumer_positions(i_queue_name text)
returns table (queue_id int4, queue_name text, consumer_name text, role text, last_tick bigint, batch_id bigint,
               active timestamptz, tick_time timestamptz, first_seq bigint, last_seq bigint, newest_seq bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with newest as materialized (
        select q.queue_id, q.queue_name, t.tick_event_seq
        from pgque.queue q
        left join lateral (
            select * from pgque.tick t where t.tick_queue = q.queue_id order by t.tick_id desc limit 1
        ) t on true
        where i_queue_name is null or q.queue_name = i_queue_name
    )
    select n.queue_id, n.queue_name, c.co_name, s.sub_role, s.sub_last_tick, s.sub_batch, s.sub_active,
           t.tick_time, t.tick_event_seq, e.tick_event_seq, n.tick_event_seq
    from pgque.subscription s
    join newest n on n.queue_id = s.sub_queue
    join pgque.consumer c on c.co_id = s.sub_consumer
    left join lateral (
        select * from pgque.tick t where t.tick_queue = s.sub_queue and t.tick_id = s.sub_last_tick limit 1
    ) t on true
    left join lateral (
        select * from pgque.tick e where e.tick_queue = s.sub_queue and e.tick_id = s.sub_next_tick limit 1
    ) e on true
    order by n.queue_name, c.co_name
$$;

-- Figures of all consumers, by queue and name.
--   lag               age of the last settled tick
--   pending_events    events between that tick and the newest one, by the sequence
--   last_batch_start  when the consumer last moved
--   batch_active      whether it has an open batch
create or replace function pgque.consumer_stats()
returns table (queue_name text, consumer_name text, lag interval, pending_events bigint, last_batch_start timestamptz,
               batch_active boolean, batch_id bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select p.queue_name, p.consumer_name, now() - p.tick_time, p.newest_seq - p.first_seq, p.active,
           p.batch_id is not null, p.batch_id
    from pgque_internal.consumer_positions(null) p
$$;

-- What consumers have not settled yet, by queue and name; true for queues that are ticked only when there are events,
-- too. Members of a cooperative group are listed while they have a batch; the group's name stands for the rest.
--   pending_events  events between the last settled tick and the newest one, by the sequence
--   oldest_age      age of the first tick with events behind the last settled one; NULL: nothing is left to do
--   unticked        whether the queue has events that no tick covers: normal for a moment, else the ticker stands
--                   still; NULL for a queue that is paused or ticked from outside
create or replace function pgque.consumer_backlog()
returns table (queue_name text, consumer_name text, pending_events bigint, oldest_age interval, unticked boolean)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    with ticker as materialized (
        select s.queue_id,
               not s.settled and pg_snapshot_xmax(s.last_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
               and pgque_internal.probe(s.queue_prefix, s.last_snapshot, pg_current_snapshot()) <> 0 as unticked
        from pgque_internal.ticker_state(null, false) s
        where s.served
    )
    select p.queue_name, p.consumer_name, p.newest_seq - p.first_seq, now() - f.tick_time, k.unticked
    from pgque_internal.consumer_positions(null) p
    left join ticker k on k.queue_id = p.queue_id
    left join lateral (
        select * from pgque.tick f
        where f.tick_queue = p.queue_id and f.tick_id > p.last_tick and f.tick_event_slots <> 0
        order by f.tick_id limit 1
    ) f on true
    where p.role <> 'coop_member' or p.last_tick is not null
$$;

-- Checks of all queues and of the schedule.
--   check_name  ticker_running (critical: no tick, or none for 10 s; paused queues are not checked),
--               consumer_lag:<consumer> (warning: behind by half a rotation period, or position unknown; critical: by a
--               whole one), rotation_health (warning: not completed, or overdue by a period), dlq_health (warning: more
--               than 1,000 dead letters); of the queue 'system', pg_cron_ticker and pg_cron_maint (critical: not scheduled
--               by pgque.start)
--   status      ok, warning or critical
--   detail      what was found
-- A queue that tick_now() ticks is not ticked while it is idle, so the first two say little there: see consumer_backlog.
create or replace function pgque.queue_health()
returns table (queue_name text, check_name text, status text, detail text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    with queue as materialized (
        select * from pgque.queue_stats()
    )
    select s.queue_name, 'ticker_running',
           case when now() - s.last_tick_time <= interval '10 seconds' then 'ok' else 'critical' end,
           coalesce('last tick ' || (now() - s.last_tick_time) || ' ago', 'no tick')
    from queue s
    where not s.ticker_paused
    union all
    select c.queue_name, 'consumer_lag:' || c.consumer_name,
           case
               when c.role = 'coop_member' and c.last_tick is null then 'ok'
               when now() - c.tick_time > s.rotation_period then 'critical'
               when now() - c.tick_time <= s.rotation_period / 2 then 'ok'
               else 'warning'
           end,
           case
               when c.role = 'coop_member' and c.last_tick is null then 'between batches'
               else coalesce('lag ' || (now() - c.tick_time), 'position unknown')
           end
    from pgque_internal.consumer_positions(null) c
    join queue s on s.queue_id = c.queue_id
    union all
    select s.queue_name, 'rotation_health',
           case when q.queue_switch_step2 is null or s.rotation_age > 2 * s.rotation_period then 'warning' else 'ok' end,
           case
               when q.queue_switch_step2 is null then 'step 2 of a rotation is pending'
               else format('last rotation %s ago, period %s', s.rotation_age, s.rotation_period)
           end
    from queue s
    join pgque.queue q on q.queue_id = s.queue_id
    union all
    select s.queue_name, 'dlq_health', case when s.dlq_count > 1000 then 'warning' else 'ok' end,
           format('%s dead letters', s.dlq_count)
    from queue s
    union all
    select 'system', j.name, case when j.id is null then 'critical' else 'ok' end, coalesce('job ' || j.id, 'not scheduled')
    from pgque.config c
    cross join lateral (values ('pg_cron_ticker', c.ticker_job_id), ('pg_cron_maint', c.maint_job_id)) j (name, id)
    order by 1, 2
$$;

-- The figures as metrics.
--   metric_name  pgque.queue.depth, pgque.queue.oldest_message_age_seconds, pgque.queue.throughput (events a second),
--                pgque.message.dead_lettered of each queue; pgque.consumer.lag_seconds, pgque.consumer.pending_events of
--                each consumer whose position is known
--   metric_type  gauge
--   value        0 where a queue's figure is unknown
--   labels       queue, and consumer
create or replace function pgque.otel_metrics()
returns table (metric_name text, metric_type text, value numeric, labels jsonb)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select m.name, 'gauge', coalesce(m.value, 0), jsonb_build_object('queue', s.queue_name)
    from pgque.queue_stats() s
    cross join lateral (values
        ('pgque.queue.depth', s.depth::numeric),
        ('pgque.queue.oldest_message_age_seconds', extract(epoch from s.oldest_msg_age)::numeric),
        ('pgque.queue.throughput', s.events_per_sec),
        ('pgque.message.dead_lettered', s.dlq_count::numeric)) m (name, value)
    union all
    select m.name, 'gauge', m.value, jsonb_build_object('queue', s.queue_name, 'consumer', s.consumer_name)
    from pgque.consumer_stats() s
    cross join lateral (values
        ('pgque.consumer.lag_seconds', extract(epoch from s.lag)::numeric),
        ('pgque.consumer.pending_events', s.pending_events::numeric)) m (name, value)
    where m.value is not null
$$;

-- Consumers that are behind, those whose position is unknown first, then by lag.
--   i_threshold  lag from which on
--   last_active  when the consumer last moved
-- A consumer that has settled everything is listed too when its queue was not ticked for so long: see consumer_backlog.
create or replace function pgque.stuck_consumers(i_threshold interval default '1 hour')
returns table (queue_name text, consumer_name text, lag interval, last_active timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select p.queue_name, p.consumer_name, now() - p.tick_time, p.active
    from pgque_internal.consumer_positions(null) p
    where (p.role <> 'coop_member' or p.last_tick is not null)
      and (p.tick_time is null or now() - p.tick_time > i_threshold)
    order by 3 desc nulls first, 1, 2
$$;

-- Open batches of a queue, the oldest first.
--   i_queue_name      queue; an unknown one has none
--   batch_age         time since the consumer opened it, or last touched it
--   estimated_events  events that it covers, by the sequence
create or replace function pgque.in_flight(i_queue_name text)
returns table (consumer_name text, batch_id bigint, batch_age interval, estimated_events bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select p.consumer_name, p.batch_id, now() - p.active, p.last_seq - p.first_seq
    from pgque_internal.consumer_positions(i_queue_name) p
    where i_queue_name is not null and p.batch_id is not null
    order by 3 desc, 1
$$;

-- A queue's id for a series of buckets.
--   i_queue_name   queue; error 'queue not found: …'
--   i_bucket_size  width of a bucket; error 'bucket size must be > 0'
create or replace function pgque_internal.bucketed_queue(i_queue_name text, i_bucket_size interval) returns int4
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue_id int4;
begin
    if i_bucket_size is null or i_bucket_size <= interval '0' then
        raise exception 'bucket size must be > 0, not %', coalesce(i_bucket_size::text, 'NULL');
    end if;
    select q.queue_id into v_queue_id from pgque.queue q where q.queue_name = i_queue_name;
    if not found then
        raise exception 'queue not found: %', i_queue_name;
    end if;
    return v_queue_id;
end
$$;

-- Start of the bucket that a time falls into; buckets are counted from the epoch.
create or replace function pgque_internal.bucket_start(i_time timestamptz, i_seconds numeric) returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select to_timestamp((floor(extract(epoch from i_time)::numeric / i_seconds) * i_seconds)::float8)
$$;

-- Events of a queue over time, as its ticks tell: those of a tick count at the time of the tick.
--   i_queue_name    queue; error 'queue not found: …'
--   i_period        time to look back; ticks are kept for as long as consumers need them, and some minutes
--   i_bucket_size   width of a bucket; error 'bucket size must be > 0'
--   bucket_start    start, a multiple of the width since the epoch; a bucket without a tick gives no row
--   events          by the sequence
--   events_per_sec  over the whole bucket
create or replace function pgque.throughput(i_queue_name text, i_period interval, i_bucket_size interval)
returns table (bucket_start timestamptz, events bigint, events_per_sec numeric)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue_id int4 := pgque_internal.bucketed_queue(i_queue_name, i_bucket_size);
    v_seconds  numeric := extract(epoch from i_bucket_size);
begin
    return query
        select b.start, sum(greatest(b.events, 0))::bigint, round(sum(greatest(b.events, 0)) / v_seconds, 3)
        from (
            select pgque_internal.bucket_start(t.tick_time, v_seconds) as start, t.tick_time,
                   t.tick_event_seq - lag(t.tick_event_seq) over (order by t.tick_id) as events
            from (
                select distinct on (t.tick_id) t.tick_id, t.tick_time, t.tick_event_seq from pgque.tick t
                where t.tick_queue = v_queue_id
                order by t.tick_id
            ) t
        ) b
        where b.tick_time >= now() - i_period and b.events is not null
        group by b.start
        order by b.start;
end
$$;

-- Failures of a queue over time.
--   i_queue_name   queue; error 'queue not found: …'
--   i_period       time to look back
--   i_bucket_size  width of a bucket; error 'bucket size must be > 0'
--   bucket_start   start, a multiple of the width since the epoch; a bucket without failures gives no row
--   retries        events that wait for a redelivery due in the bucket, those to come included
--   dead_letters   dead letters of the bucket
create or replace function pgque.error_rate(i_queue_name text, i_period interval, i_bucket_size interval)
returns table (bucket_start timestamptz, retries bigint, dead_letters bigint)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue_id int4 := pgque_internal.bucketed_queue(i_queue_name, i_bucket_size);
    v_seconds  numeric := extract(epoch from i_bucket_size);
begin
    return query
        select pgque_internal.bucket_start(f.at, v_seconds) as start, count(*) filter (where f.retry),
               count(*) filter (where not f.retry)
        from (
            select r.ev_retry_after, true from pgque.retry_queue r
            where r.ev_queue = v_queue_id and r.ev_retry_after >= now() - i_period
            union all
            select d.dl_time, false from pgque.dead_letter d
            where d.dl_queue_id = v_queue_id and d.dl_time >= now() - i_period
        ) f (at, retry)
        group by start
        order by start;
end
$$;
