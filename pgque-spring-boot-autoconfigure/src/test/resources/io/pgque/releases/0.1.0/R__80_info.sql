-- What can be read about queues, consumers and batches.
--
-- What this topic guarantees
--   * Reading for its readers only, without rights on the tables beneath.
--   * Nothing here locks a row or writes one.

-- Queues, by name.
--   i_queue_name  queue; NULL: all; an unknown one gives no row
--   ticker_lag    age of the newest tick
--   ev_per_sec    by the sequence, between the newest tick and the oldest of the last 20
--   ev_new        events since the newest tick, by the sequence
create or replace function pgque.get_queue_info(
    i_queue_name text,
    out queue_name text, out queue_ntables int4, out queue_cur_table int4, out queue_rotation_period interval,
    out queue_switch_time timestamptz, out queue_external_ticker boolean, out queue_ticker_paused boolean,
    out queue_ticker_max_count int4, out queue_ticker_max_lag interval, out queue_ticker_idle_period interval,
    out ticker_lag interval, out ev_per_sec float8, out ev_new bigint, out last_tick_id bigint)
returns setof record
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select q.queue_name, q.queue_ntables, q.queue_cur_table, q.queue_rotation_period, q.queue_switch_time,
           q.queue_external_ticker, q.queue_ticker_paused, q.queue_ticker_max_count, q.queue_ticker_max_lag,
           q.queue_ticker_idle_period,
           now() - t.tick_time,
           (t.tick_event_seq - o.tick_event_seq) / nullif(extract(epoch from t.tick_time - o.tick_time), 0)::float8,
           coalesce(pg_sequence_last_value(q.queue_sequence), 0) - t.tick_event_seq,
           t.tick_id
    from pgque.queue q
    left join lateral (
        select * from pgque.tick t where t.tick_queue = q.queue_id order by t.tick_id desc limit 1
    ) t on true
    left join lateral (
        select * from pgque.tick o where o.tick_queue = q.queue_id and o.tick_id > t.tick_id - 20
        order by o.tick_id limit 1
    ) o on true
    where i_queue_name is null or q.queue_name = i_queue_name
    order by q.queue_name
$$;

-- All queues; see get_queue_info(text).
create or replace function pgque.get_queue_info(
    out queue_name text, out queue_ntables int4, out queue_cur_table int4, out queue_rotation_period interval,
    out queue_switch_time timestamptz, out queue_external_ticker boolean, out queue_ticker_paused boolean,
    out queue_ticker_max_count int4, out queue_ticker_max_lag interval, out queue_ticker_idle_period interval,
    out ticker_lag interval, out ev_per_sec float8, out ev_new bigint, out last_tick_id bigint)
returns setof record
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select * from pgque.get_queue_info(null::text)
$$;

-- Consumers, by queue and name.
--   i_queue_name, i_consumer_name  which; NULL: all
--   lag             age of the last settled tick
--   last_seen       time since the consumer moved
--   pending_events  events behind the last settled tick, by the sequence
create or replace function pgque.get_consumer_info(
    i_queue_name text, i_consumer_name text,
    out queue_name text, out consumer_name text, out lag interval, out last_seen interval, out last_tick bigint,
    out current_batch bigint, out next_tick bigint, out pending_events bigint)
returns setof record
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select q.queue_name, c.co_name, now() - t.tick_time, now() - s.sub_active, s.sub_last_tick, s.sub_batch, s.sub_next_tick,
           (pgque_internal.newest_tick(q.queue_id)).tick_event_seq - t.tick_event_seq
    from pgque.subscription s
    join pgque.queue q on q.queue_id = s.sub_queue
    join pgque.consumer c on c.co_id = s.sub_consumer
    left join lateral (
        select * from pgque.tick t where t.tick_queue = s.sub_queue and t.tick_id = s.sub_last_tick limit 1
    ) t on true
    where (i_queue_name is null or q.queue_name = i_queue_name)
      and (i_consumer_name is null or c.co_name = i_consumer_name)
    order by q.queue_name, c.co_name
$$;

-- Consumers of a queue; see get_consumer_info(text, text).
create or replace function pgque.get_consumer_info(
    i_queue_name text,
    out queue_name text, out consumer_name text, out lag interval, out last_seen interval, out last_tick bigint,
    out current_batch bigint, out next_tick bigint, out pending_events bigint)
returns setof record
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select * from pgque.get_consumer_info(i_queue_name, null::text)
$$;

-- All consumers; see get_consumer_info(text, text).
create or replace function pgque.get_consumer_info(
    out queue_name text, out consumer_name text, out lag interval, out last_seen interval, out last_tick bigint,
    out current_batch bigint, out next_tick bigint, out pending_events bigint)
returns setof record
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select * from pgque.get_consumer_info(null::text, null::text)
$$;

-- One open batch.
--   x_batch_id  batch; an unknown one gives a row of NULLs
--   lag         age of its end tick
create or replace function pgque.get_batch_info(
    x_batch_id bigint,
    out queue_name text, out consumer_name text, out batch_start timestamptz, out batch_end timestamptz,
    out prev_tick_id bigint, out tick_id bigint, out lag interval, out seq_start bigint, out seq_end bigint)
returns record
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select q.queue_name, c.co_name, p.tick_time, t.tick_time, s.sub_last_tick, s.sub_next_tick, now() - t.tick_time,
           p.tick_event_seq, t.tick_event_seq
    from pgque.subscription s
    join pgque.queue q on q.queue_id = s.sub_queue
    join pgque.consumer c on c.co_id = s.sub_consumer
    left join lateral (
        select * from pgque.tick p where p.tick_queue = s.sub_queue and p.tick_id = s.sub_last_tick limit 1
    ) p on true
    left join lateral (
        select * from pgque.tick t where t.tick_queue = s.sub_queue and t.tick_id = s.sub_next_tick limit 1
    ) t on true
    where s.sub_batch = x_batch_id
$$;

-- State of the installation, a line a component.
create or replace function pgque.status() returns table (component text, status text, detail text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_config pgque.config;
begin
    select * into v_config from pgque.config;
    return query values
        ('postgresql', 'info', version()),
        ('pgque', 'info', pgque.version()),
        ('scheduler', coalesce(v_config.scheduler, 'manual'),
         case when v_config.scheduler is null
              then format('no scheduler of the database: tick period %s ms applies to pgque.ticker_loop()', v_config.tick_period_ms)
              else format('ticker job %s, maintenance job %s, tick period %s ms', v_config.ticker_job_id,
                          v_config.maint_job_id, v_config.tick_period_ms) end),
        ('ticker', case when v_config.ticker_job_id is null then 'stopped' else 'scheduled' end,
         coalesce('job ' || v_config.ticker_job_id, 'no job of the database ticks')),
        ('maintenance', case when v_config.maint_job_id is null then 'stopped' else 'scheduled' end,
         coalesce('job ' || v_config.maint_job_id, 'no job of the database runs maintenance'));
    if pgque_internal.pg_cron_version() is null then
        return query values
            ('pg_cron', 'unavailable',
             'not installed in this database: call pgque.ticker() several times a second, pgque.maint_retry_events()'
             ' and pgque.maint_deliver_delayed() every second and pgque.maint() every half minute');
    end if;
    if not exists (select from pg_namespace n where n.nspname = 'timetable') then
        return query values ('pg_timetable', 'unavailable', 'not installed in this database');
    end if;
    return query values
        ('queues', 'info', format('%s queues configured', (select count(*) from pgque.queue))),
        ('consumers', 'info', format('%s active subscriptions', (select count(*) from pgque.subscription)));
end
$$;
