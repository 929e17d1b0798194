-- Configuration in one call.
--
-- What this topic guarantees
--   * A queue is made with all its settings or not at all; each setting is checked as by set_queue_config.

-- Makes a queue and gives it settings.
--   i_queue    name, as of create_queue(text)
--   i_options  object of settings and values, as of set_queue_config; a JSON null resets a setting to its
--              default. They are applied to a queue that was there, too
--   result     1 when made, 0 when it was there; errors 'options must be a JSON object', 'value of … must be …', and
--              those of set_queue_config
create or replace function pgque.create_queue(i_queue text, i_options jsonb) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_made   integer;
    v_option record;
begin
    if jsonb_typeof(i_options) <> 'object' then
        raise exception 'options must be a JSON object, not %', i_options;
    end if;
    v_made := pgque.create_queue(i_queue);
    for v_option in select o.key, o.value from jsonb_each(i_options) o loop
        if jsonb_typeof(v_option.value) in ('object', 'array') then
            raise exception 'value of % must be a string, number, boolean or null, not %', v_option.key, v_option.value;
        end if;
        perform pgque.set_queue_config(i_queue, v_option.key, v_option.value #>> '{}');
    end loop;
    return v_made;
end
$$;

-- Stops the ticks of a queue: events are taken, but delivered only when it is resumed.
--   i_queue  queue; error 'No such event queue: …'
create or replace function pgque.pause_queue(i_queue text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgque.set_queue_config(i_queue, 'ticker_paused'::text, 'true'::text);
end
$$;

-- Lets a queue be ticked again.
--   i_queue  queue; error 'No such event queue: …'
create or replace function pgque.resume_queue(i_queue text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgque.set_queue_config(i_queue, 'ticker_paused'::text, 'false'::text);
end
$$;
