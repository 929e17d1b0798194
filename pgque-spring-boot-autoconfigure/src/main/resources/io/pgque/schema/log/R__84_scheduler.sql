-- Schedulers of the database, for those who do not run the ticker of an application; and the end of the engine.
--
-- What this topic guarantees
--   * At most one scheduler is in charge: starting one takes the jobs from the other.
--   * Starting and stopping can be repeated, and do not mind jobs that somebody has removed by hand.
--   * Functions of a scheduler run with the rights of the engine's owner, so nothing is called that a user without
--     these rights could have made.
--   * Nothing is removed by uninstall() before the jobs are.

-- Names of the engine's jobs.
create or replace function pgque_internal.job_names() returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select array['pgque_ticker', 'pgque_retry_events', 'pgque_maint', 'pgque_rotate_step2']
$$;

-- Release of pg_cron in this database, such as 1.6; NULL: there is none. Its objects are those of schema cron, which
-- the extension makes itself.
create or replace function pgque_internal.pg_cron_version() returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select e.extversion from pg_extension e where e.extname = 'pg_cron'
$$;

-- Removes the engine's jobs of this database from pg_cron.
create or replace function pgque_internal.remove_cron_jobs() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    -- By what is there, not by what was stored: removing a job that does not exist is an error.
    perform cron.unschedule(j.jobid)
    from cron.job j
    where j.database = current_database() and j.jobname = any (pgque_internal.job_names());
end
$$;

-- Refuses a schema timetable with objects of others than superusers and the engine's owner, who calls them.
--   errors  'pg_timetable is not installed in this database', 'untrusted pg_timetable schema owner'
create or replace function pgque_internal.require_timetable() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_schema oid := to_regnamespace('timetable');
    v_owner  name;
begin
    if v_schema is null then
        raise exception 'pg_timetable is not installed in this database'
            using hint = 'Let pg_timetable connect once with this database, so that it makes its schema timetable.';
    end if;
    select r.rolname into v_owner
    from (
        select n.nspowner from pg_namespace n where n.oid = v_schema
        union all
        select p.proowner from pg_proc p where p.pronamespace = v_schema
        union all
        select c.relowner from pg_class c where c.relnamespace = v_schema
        union all
        select t.typowner from pg_type t where t.typnamespace = v_schema
    ) o (id)
    join pg_roles r on r.oid = o.id
    where not r.rolsuper and r.rolname <> current_user
    limit 1;
    if found then
        raise exception 'untrusted pg_timetable schema owner: %', v_owner
            using hint = format('Everything in schema timetable must belong to a superuser or to %s.', current_user);
    end if;
end
$$;

-- Removes the engine's jobs from pg_timetable.
create or replace function pgque_internal.remove_timetable_jobs() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgque_internal.require_timetable();
    perform timetable.delete_job(j) from unnest(pgque_internal.job_names()) j;
end
$$;

-- Makes a job of pg_timetable; releases differ in the number of arguments, and say no more about a job than that it
-- runs SQL, once at a time, and goes on after an error.
--   result  its id
create or replace function pgque_internal.add_timetable_job(i_name text, i_schedule text, i_command text) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_arguments int;
begin
    select max(p.pronargs) into v_arguments
    from pg_proc p
    where p.pronamespace = to_regnamespace('timetable') and p.proname = 'add_job' and p.pronargs in (11, 12);
    if v_arguments = 12 then
        return timetable.add_job(i_name, i_schedule, i_command, null, 'SQL', null, 1, true, false, true, false, null);
    elsif v_arguments = 11 then
        return timetable.add_job(i_name, i_schedule, i_command, null, 'SQL', null, 1, true, false, true, false);
    end if;
    raise exception 'pg_timetable has no function timetable.add_job of 11 or 12 arguments';
end
$$;

-- Notes who runs the engine's jobs.
--   i_scheduler  'pg_cron', 'pg_timetable'; NULL: nobody, and there are no jobs
create or replace function pgque_internal.set_scheduler(i_scheduler text, i_ticker_job bigint, i_maint_job bigint)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    update pgque.config set scheduler = i_scheduler, ticker_job_id = i_ticker_job, maint_job_id = i_maint_job
$$;

-- Lets pg_cron run the engine: pgque_ticker every second, pgque_retry_events and pgque_maint every 30 seconds,
-- pgque_rotate_step2 every 10 seconds. Jobs of an earlier call, and those of pg_timetable, are replaced.
--   errors  an error that names pg_cron where it is missing in this database, or older than release 1.5, which is the
--           first that knows seconds
create or replace function pgque.start() returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_version text := pgque_internal.pg_cron_version();
    v_ticker  bigint;
    v_maint   bigint;
begin
    if v_version is null then
        raise exception 'pg_cron is not installed in this database. PgQue itself works without pg_cron'
            using hint = 'Call pgque.ticker(), pgque.maint_retry_events() and pgque.maint() in another way, or create'
                         ' extension pg_cron in the database that cron.database_name says.';
    end if;
    if string_to_array(coalesce(substring(v_version from '^\d+(?:\.\d+)*'), '0'), '.')::int[] < array[1, 5] then
        raise exception 'start() needs pg_cron 1.5 or newer, which knows schedules of seconds, not %. PgQue itself works without pg_cron',
            v_version
            using hint = 'Call pgque.ticker(), pgque.maint_retry_events() and pgque.maint() in another way, or install a'
                         ' newer pg_cron and then: alter extension pg_cron update.';
    end if;

    perform pgque.stop();
    perform pgque_internal.remove_cron_jobs();
    v_ticker := cron.schedule('pgque_ticker'::text, '1 second'::text, 'CALL pgque.ticker_loop()'::text);
    v_maint := cron.schedule('pgque_maint'::text, '30 seconds'::text, 'SELECT pgque.maint()'::text);
    perform cron.schedule('pgque_retry_events'::text, '30 seconds'::text, 'SELECT pgque.maint_retry_events()'::text);
    perform cron.schedule('pgque_rotate_step2'::text, '10 seconds'::text, 'SELECT pgque.maint_rotate_tables_step2()'::text);
    perform pgque_internal.set_scheduler('pg_cron', v_ticker, v_maint);
end
$$;

-- Lets pg_timetable run the engine, with the jobs and periods of start(). Jobs of an earlier call, and those of
-- pg_cron, are replaced. pg_timetable runs them as the user it connects with, who must be a member of pgque_admin.
--   i_ticks_per_second  from 1 to 1000, a divisor of 1000; sets the tick period
--   errors              one that names ticks_per_second and the value; one that names pg_timetable where it is missing;
--                       'untrusted pg_timetable schema owner' where others than superusers and the engine's owner own
--                       something in its schema
create or replace function pgque.start_timetable(i_ticks_per_second integer default 10) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ticker bigint;
    v_maint  bigint;
begin
    if i_ticks_per_second is null or i_ticks_per_second not between 1 and 1000 or 1000 % i_ticks_per_second <> 0 then
        raise exception 'ticks_per_second must be from 1 to 1000 and divide 1000, not %',
            coalesce(i_ticks_per_second::text, 'NULL');
    end if;
    perform pgque_internal.require_timetable();

    perform pgque.stop();
    perform pgque_internal.remove_timetable_jobs();
    perform pgque.set_tick_period_ms(1000 / i_ticks_per_second);
    v_ticker := pgque_internal.add_timetable_job('pgque_ticker', '@every 1 second', 'CALL pgque.ticker_loop()');
    v_maint := pgque_internal.add_timetable_job('pgque_maint', '@every 30 seconds', 'SELECT pgque.maint()');
    perform pgque_internal.add_timetable_job('pgque_retry_events', '@every 30 seconds', 'SELECT pgque.maint_retry_events()');
    perform pgque_internal.add_timetable_job('pgque_rotate_step2', '@every 10 seconds',
                                             'SELECT pgque.maint_rotate_tables_step2()');
    perform pgque_internal.set_scheduler('pg_timetable', v_ticker, v_maint);
end
$$;

-- Removes the jobs that start_timetable() made. Does nothing when there are none; where pg_timetable itself is gone,
-- they are gone with it.
--   errors  as start_timetable
create or replace function pgque.stop_timetable() returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- One at a time.
    perform from pgque.config c where c.scheduler = 'pg_timetable' for update;
    if not found then
        return;
    end if;
    if to_regnamespace('timetable') is not null then
        perform pgque_internal.remove_timetable_jobs();
    end if;
    perform pgque_internal.set_scheduler(null, null, null);
end
$$;

-- Removes the jobs that start() or start_timetable() made. Does nothing when there are none; where pg_cron itself is
-- gone, they are gone with it.
create or replace function pgque.stop() returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_config pgque.config;
begin
    -- One at a time.
    select * into v_config from pgque.config for update;
    if v_config.scheduler = 'pg_timetable' then
        perform pgque.stop_timetable();
    elsif num_nonnulls(v_config.scheduler, v_config.ticker_job_id, v_config.maint_job_id) > 0 then
        if pgque_internal.pg_cron_version() is not null then
            perform pgque_internal.remove_cron_jobs();
        end if;
        perform pgque_internal.set_scheduler(null, null, null);
    end if;
end
$$;

-- Removes the engine with all its queues, and what depends on it, such as capture triggers. The roles stay: other
-- databases may use them. Every queue takes some 60 locks until the end of the transaction: where they are many, drop
-- them one by one before.
--   errors  those of stop(): then nothing is removed; one that says 'drop extension … cascade' where the engine is
--           part of an extension
create or replace function pgque.uninstall() returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set client_min_messages = 'warning'
as $$
declare
    v_extension name;
begin
    select e.extname into v_extension
    from pg_depend d
    join pg_extension e on e.oid = d.refobjid
    where d.classid = 'pg_namespace'::regclass and d.objid = 'pgque'::regnamespace
      and d.refclassid = 'pg_extension'::regclass and d.deptype = 'e';
    if found then
        raise exception 'pgque is part of an extension: drop extension % cascade', quote_ident(v_extension);
    end if;
    perform pgque.stop();
    drop schema pgque, pgque_internal cascade;
end
$$;
