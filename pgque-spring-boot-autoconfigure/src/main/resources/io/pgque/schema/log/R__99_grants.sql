-- Release and privileges. The version in this file makes it run last in every release, when all functions are
-- there.
--
-- What this topic guarantees
--   * PUBLIC holds nothing. Readers consume, writers send, administrators do both and run the engine; what is
--     named for nobody below is for the owner alone.
--   * Payloads are readable by readers only. Writers may append to event tables by themselves, but set none of the
--     columns by which the engine finds and addresses an event.
--   * Administrators may create functions in schema pgque (hooks); none of ours looks anything up there by an
--     unqualified name, and everything internal is in a schema where they can create nothing. Of what is in there,
--     writers may call the functions of the capture triggers, which run with the rights of whoever makes a change
--     and do nothing that he could not do himself.
--   * What can be called from outside has a search path of its own, and so has what a migration calls. Internal
--     functions that every tick or every batch needs have that of the function that calls them: setting it again for
--     each would take longer than many of them do.

-- Release of this schema.
create or replace function pgque.version() returns text
language sql immutable security definer
set search_path = pg_catalog, pg_temp
as $$
    select '0.2.0'
$$;

-- Whose engine this is: other engines with the same API have no such function, or another answer.
create or replace function pgque.distribution() returns text
language sql immutable security definer
set search_path = pg_catalog, pg_temp
as $$
    select 'pgque-spring'
$$;

-- Release of this schema, as of version(): for those too who may only send.
create or replace function pgque.release() returns text
language sql immutable security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgque.version()
$$;

revoke all on all functions in schema pgque, pgque_internal from public;
revoke all on all procedures in schema pgque, pgque_internal from public;
revoke all on all tables in schema pgque, pgque_internal from public;

-- A column of an internal row type, in anybody's table, would keep the next release from changing ours.
do $$
declare
    v_type text;
begin
    for v_type in
        select pg_catalog.format_type(t.oid, null)
        from pg_catalog.pg_type t
        where t.typnamespace = 'pgque_internal'::regnamespace and t.typelem = 0
    loop
        execute pg_catalog.format('revoke usage on type %s from public', v_type);
    end loop;
end
$$;

grant usage on schema pgque to pgque_reader, pgque_writer, pgque_admin;
grant create on schema pgque to pgque_admin;
grant usage on schema pgque_internal to pgque_writer;

grant select on pgque.queue, pgque.consumer, pgque.tick, pgque.subscription, pgque.event_template, pgque.retry_queue,
    pgque.dead_letter, pgque.config, pgque.partition_consumer, pgque.partition_slot, pgque.partition_slot_status to pgque_reader;
-- What the condition of an insert of a writer's own asks, and the look-up of its place.
grant select (queue_id, queue_name, queue_cur_table, queue_disable_insert, queue_switch_step1) on pgque.queue to pgque_writer;
grant update (queue_extra_maint, queue_max_retries) on pgque.queue to pgque_admin;

grant execute on function
    pgque.send(text, jsonb),
    pgque.send(text, text),
    pgque.send(text, text, jsonb),
    pgque.send(text, text, text),
    pgque.send_batch(text, jsonb[]),
    pgque.send_batch(text, text[]),
    pgque.send_batch(text, text, jsonb[]),
    pgque.send_batch(text, text, text[]),
    pgque.insert_event(text, text, text),
    pgque.insert_event(text, text, text, text, text, text, text),
    pgque.event_place(text),
    pgque.dlq_replay(bigint),
    pgque.dlq_redeliver(bigint),
    pgque.dlq_replay_all(text),
    pgque.dlq_redeliver_all(text)
to pgque_writer;

grant execute on function
    pgque_internal.capture(text, text[], text, text, text, oid, text, text, record, record),
    pgque_internal.capture_options(text[]),
    pgque_internal.capture_columns(oid),
    pgque_internal.capture_query(text[], text[], boolean),
    pgque_internal.capture_expressions(text, text[], text),
    pgque_internal.capture_encode(text, text, text, text, text[], text[], boolean[], text[], text[], text[]),
    pgque_internal.capture_json(text[], text[], text[], boolean[]),
    pgque_internal.capture_url(text[], text[], boolean[]),
    pgque_internal.capture_insert(text[], text[], boolean[]),
    pgque_internal.capture_key(text[], text[], text[]),
    pgque_internal.capture_update(text[], text[], text[], boolean[], text[]),
    pgque._urlencode(text)
to pgque_writer;

grant execute on function
    pgque.subscribe(text, text),
    pgque.unsubscribe(text, text),
    pgque.register_consumer(text, text),
    pgque.register_consumer_at(text, text, bigint),
    pgque.unregister_consumer(text, text),
    pgque.receive(text, text, integer),
    pgque.receive_batch(text, text, integer, bigint),
    pgque.receive_page(bigint, bigint, integer, bigint),
    pgque.receive_mapped_page(bigint, bigint, pgque.batch_page, bigint),
    pgque.batch_pages(bigint, bigint, integer),
    pgque.instance_beat(text),
    pgque.lease_acquire(text, text, text, interval),
    pgque.lease_left(text, text),
    pgque.subscribe_from(text, text, timestamptz),
    pgque.join_group(text, text, text, text, interval),
    pgque.leave_group(text, text, text),
    pgque.dissolve_group(text, text),
    pgque.claim_slots(text, text, integer, text, interval),
    pgque.leave_slots(text, text, text),
    pgque.consumer_mode(text, text),
    pgque.lease_release(text, text, text, bigint),
    pgque.leases(),
    pgque.inbox_add(text, text, bigint),
    pgque.receive_leased(text, text, text, bigint, integer, bigint),
    pgque.settle_and_receive_leased(bigint, text, bigint, integer, bigint),
    pgque.register_subconsumer(text, text, text, boolean),
    pgque.subscribe_subconsumer(text, text, text, boolean),
    pgque.unregister_subconsumer(text, text, text, integer),
    pgque.unsubscribe_subconsumer(text, text, text, integer),
    pgque.touch_subconsumer(text, text, text),
    pgque.receive_coop(text, text, text, integer, interval),
    pgque.receive_coop_batch(text, text, text, integer, bigint, interval),
    pgque.next_batch(text, text, text, interval),
    pgque.next_batch_custom(text, text, text, interval, integer, interval, interval),
    pgque.subscribe_slot(text, text, integer, integer),
    pgque.subscribe_slots(text, text, integer),
    pgque.unsubscribe_slot(text, text, integer),
    pgque.change_partitions(text, text, integer),
    pgque.claim_slot(text, text, integer, text, interval),
    pgque.release_slot(text, text, integer, text),
    pgque.receive_partitioned(text, text, integer, integer, text, integer),
    pgque.ack_partitioned(text, text, integer, integer, text),
    pgque.ack_partitioned(text, text, integer, integer, text, bigint),
    pgque.nack_partitioned(text, text, integer, integer, text, pgque.message, interval, text),
    pgque.slot_of(text, integer),
    pgque.tick_before(text, timestamptz),
    pgque.seek(text, text, timestamptz),
    pgque.ack(bigint),
    pgque.nack(bigint, pgque.message, interval, text),
    pgque.settle(bigint, bigint, bigint[], interval[], text[], boolean[]),
    pgque.settle_holding(bigint, bigint, bigint[], interval[], text[], boolean[], bigint[], bigint[]),
    pgque.key_places(bigint, bigint[], text[]),
    pgque.held_keys(text),
    pgque.next_batch(text, text),
    pgque.next_batch_info(text, text),
    pgque.next_batch_custom(text, text, interval, integer, interval),
    pgque.get_batch_events(bigint),
    pgque.finish_batch(bigint),
    pgque.event_retry(bigint, bigint, timestamptz),
    pgque.event_retry(bigint, bigint, integer),
    pgque.get_queue_info(),
    pgque.get_queue_info(text),
    pgque.get_consumer_info(),
    pgque.get_consumer_info(text),
    pgque.get_consumer_info(text, text),
    pgque.get_batch_info(bigint),
    pgque.dlq_inspect(text, integer),
    pgque.dead_letters(text, integer)
to pgque_reader;

-- Recognising the release and the engine is for everybody who may use it.
grant execute on function pgque.version(), pgque.distribution(), pgque.release() to pgque_reader;
grant execute on function pgque.distribution(), pgque.release() to pgque_writer;

grant execute on function
    pgque.insert_event_raw(text, bigint, timestamptz, integer, integer, text, text, text, text, text, text),
    pgque.current_event_table(text),
    pgque.get_batch_cursor(bigint, text, integer),
    pgque.get_batch_cursor(bigint, text, integer, text),
    pgque.batch_retry(bigint, integer),
    pgque.event_retry_raw(text, text, timestamptz, bigint, timestamptz, integer, text, text, text, text, text, text),
    pgque.batch_event_sql(bigint),
    pgque.batch_event_tables(bigint),
    pgque.find_tick_helper(int4, int8, timestamptz, int8, int8, interval),
    pgque.create_queue(text),
    pgque.drop_queue(text),
    pgque.drop_queue(text, boolean),
    pgque.set_inbox_retention(interval),
    pgque.set_queue_config(text, text, text),
    pgque.grant_perms(text),
    pgque._grant_perms_from(text, text, text, text),
    pgque.tune_storage(text),
    pgque.quote_fqname(text),
    pgque.seq_getval(text),
    pgque.seq_setval(text, bigint),
    pgque.upgrade_schema(),
    pgque.ticker(),
    pgque.ticker(text),
    pgque.ticker(text, bigint, timestamptz, bigint),
    pgque.tick_now(),
    pgque.tick_now(text[]),
    pgque.tick_and_receive_leased(text, text, text, bigint, integer, bigint),
    pgque.force_tick(text),
    pgque.force_next_tick(text),
    pgque.set_tick_period_ms(integer),
    pgque.maint(),
    pgque.maint_engine(),
    pgque.maint_hooks(),
    pgque.maint_hook(text, text),
    pgque.maint_retry_events(),
    pgque.maint_rotate_tables_step1(text),
    pgque.maint_rotate_tables_step2(),
    pgque.maint_operations(),
    pgque.maint_tables_to_vacuum(),
    pgque.repair_queue(text),
    pgque.status(),
    pgque.start(),
    pgque.stop(),
    pgque.start_timetable(integer),
    pgque.stop_timetable(),
    pgque.event_dead(bigint, bigint, text, timestamptz, xid8, int4, text, text, text, text, text, text),
    pgque.dlq_purge(text, interval),
    pgque.jsontriga(),
    pgque.logutriga(),
    pgque.sqltriga()
to pgque_admin;

grant execute on procedure pgque.ticker_loop() to pgque_admin;

-- Options of a send.
grant execute on function
    pgque.send(text, text, jsonb, text),
    pgque.send(text, text, text, text),
    pgque.send_events(text, text[], text[], text[], text[], text[], text[]),
    pgque.send_idem(text, text, text, text, interval, text),
    pgque.send_idem(text, text, jsonb, text, interval, text),
    pgque.send_idem_checked(text, text, text, text, interval, text),
    pgque.send_idem_checked(text, text, jsonb, text, interval, text),
    pgque.send_once(text, text, text, text, interval, text, text, text),
    pgque.send_at(text, text, jsonb, timestamptz),
    pgque.send_at(text, text, text, timestamptz),
    pgque.send_at(text, text, jsonb, timestamptz, text, text, text, text),
    pgque.send_at(text, text, text, timestamptz, text, text, text, text),
    pgque.send_after(text, text, jsonb, interval, text),
    pgque.send_after(text, text, text, interval, text),
    pgque.cancel_delayed(text, bigint)
to pgque_writer;

grant select on pgque.delayed_events to pgque_reader;

grant execute on function
    pgque.maint_idem(),
    pgque.maint_idem(text),
    pgque.maint_deliver_delayed()
to pgque_admin;

-- Configuration in one call.
grant execute on function
    pgque.create_queue(text, jsonb),
    pgque.pause_queue(text),
    pgque.resume_queue(text)
to pgque_admin;

-- Figures.
grant execute on function
    pgque.queue_stats(),
    pgque.consumer_stats(),
    pgque.consumer_backlog(),
    pgque.queue_health(),
    pgque.otel_metrics(),
    pgque.stuck_consumers(interval),
    pgque.in_flight(text),
    pgque.throughput(text, interval, interval),
    pgque.error_rate(text, interval, interval)
to pgque_reader;
