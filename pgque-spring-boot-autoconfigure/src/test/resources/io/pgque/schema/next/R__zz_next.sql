create or replace function pgque.version() returns text
language sql immutable security definer
set search_path = pg_catalog, pg_temp
as $$
    select '0.3.0'
$$;
