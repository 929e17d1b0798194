package io.pgque.engine;

import io.pgque.testsupport.TestDatabase;

/**
 * Stand-ins for the schedulers of the database, which tests can't install: what their
 * manuals promise of jobs, without running any.
 */
final class FakeScheduler {

	private FakeScheduler() {
	}

	/**
	 * Let the database have a pg_cron.
	 * @param version as the extension gives it
	 */
	static void installCron(TestDatabase database, String version) {
		database.execute("""
				create schema cron;
				grant usage on schema cron to public;
				create table cron.job (
				    jobid bigint generated always as identity primary key,
				    schedule text not null,
				    command text not null,
				    nodename text not null default 'localhost',
				    nodeport int not null default 5432,
				    database text not null default current_database(),
				    username text not null default current_user,
				    active boolean not null default true,
				    jobname text,
				    unique (jobname, username));
				grant select, insert, update, delete on cron.job to public;
				create function cron.schedule(schedule text, command text) returns bigint
				language sql as $$
				    insert into cron.job (schedule, command) values ($1, $2) returning jobid
				$$;
				create function cron.schedule(job_name text, schedule text, command text) returns bigint
				language sql as $$
				    insert into cron.job (jobname, schedule, command) values ($1, $2, $3)
				    on conflict (jobname, username) do update set schedule = $2, command = $3
				    returning jobid
				$$;
				create function cron.unschedule(job_id bigint) returns boolean
				language plpgsql as $$
				begin
				    delete from cron.job where jobid = job_id;
				    if not found then
				        raise exception 'could not find valid entry for job ''%''', job_id using errcode = 'XX000';
				    end if;
				    return true;
				end
				$$;
				create function cron.unschedule(job_name text) returns boolean
				language plpgsql as $$
				begin
				    delete from cron.job where jobname = job_name;
				    if not found then
				        raise exception 'could not find valid entry for job ''%''', job_name using errcode = 'XX000';
				    end if;
				    return true;
				end
				$$;
				""");
		setCronVersion(database, version);
	}

	/**
	 * Let the engine find this version of pg_cron.
	 * @param version null for none
	 */
	static void setCronVersion(TestDatabase database, String version) {
		database.execute("""
				create or replace function pgque_internal.pg_cron_version() returns text
				language sql stable set search_path = pg_catalog, pg_temp
				as $$ select %s::text $$
				""".formatted((version != null) ? "'" + version + "'" : "null"));
	}

	/**
	 * Let the database have a pg_timetable.
	 * @param arguments of its function add_job: 11, or 12 as in newer releases
	 */
	static void installTimetable(TestDatabase database, int arguments) {
		database.execute(
				"""
						create schema timetable;
						create domain timetable.cron as text check (value ~ '^@every \\d+ seconds?$' or value ~ '^([^ ]+ ){4}[^ ]+$');
						create type timetable.command_kind as enum ('SQL', 'PROGRAM', 'BUILTIN');
						create table timetable.chain (
						    chain_id bigint generated always as identity primary key,
						    chain_name text not null unique,
						    run_at timetable.cron,
						    command text not null,
						    kind timetable.command_kind not null,
						    max_instances int,
						    live boolean not null,
						    self_destruct boolean not null,
						    ignore_errors boolean not null,
						    exclusive boolean not null);
						create function timetable.add_job(
						    job_name text, job_schedule timetable.cron, job_command text, job_parameters jsonb default null,
						    job_kind timetable.command_kind default 'SQL', job_client_name text default null,
						    job_max_instances integer default null, job_live boolean default true,
						    job_self_destruct boolean default false, job_ignore_errors boolean default true,
						    job_exclusive boolean default false%s)
						returns bigint language sql as $$
						    insert into timetable.chain (chain_name, run_at, command, kind, max_instances, live, self_destruct,
						                                 ignore_errors, exclusive)
						    values ($1, $2, $3, $5, $7, $8, $9, $10, $11)
						    returning chain_id
						$$;
						create function timetable.delete_job(job_name text) returns boolean language sql as $$
						    with gone as (delete from timetable.chain where chain_name = $1 returning 1)
						    select exists (select from gone)
						$$;
						"""
					.formatted((arguments > 11) ? ", job_on_error text default null" : ""));
	}

}
