-- Change capture: triggers that send the row changes of a table as events.
--
-- What this topic guarantees
--   * An event is sent in the transaction of its change, with the rights of whoever makes the change: that user
--     must be a member of pgque_writer. A change whose event can't be sent fails.
--   * What is sent depends on the rows and on the trigger's arguments only, whatever date style, float format
--     or search_path the session has.
--   * Nothing is lost for want of a key: changing or deleting rows that have none is an error, and so is changing
--     a key.
--
-- Use
--   create trigger capture after insert or update or delete on orders
--   for each row execute function pgque.jsontriga('order_changes', 'ignore=updated_at');
--   create trigger capture_truncate after truncate on orders
--   for each statement execute function pgque.jsontriga('order_changes');
--
-- Arguments of all three triggers; the first is the queue
--   skip              no change takes place, whether an event is sent or not; for BEFORE triggers of rows
--   backup            ev_extra2 is the row before an UPDATE, encoded as the format encodes rows
--   deny              every change is an error
--   pkey=a,b          columns that identify a row; the default is the primary key
--   ignore=a,b        columns that are no part of the data; an UPDATE that changes nothing else sends nothing.
--                     Key columns can't be ignored; names of no column have no effect
--   when=<expr>       sends an event only where this is true
--   ev_type=<expr>, ev_extra1=<expr> … ev_extra4=<expr>
--                     what the event has instead; ev_extra1 is schema.table otherwise
-- Expressions see the columns of the row: the new one, that of a DELETE, or NULLs for a TRUNCATE. Names in them
-- are looked up in pg_catalog only, others need their schema. Names of columns are written as they are, without
-- quotes.
--
-- Columns _pgq_ev_type and _pgq_ev_extra1 … _pgq_ev_extra4 are no part of the data: a value in them is what the
-- event has instead, before any expression. Generated columns are left out where they are not known (virtual
-- ones, and all in BEFORE triggers), and always by sqltriga, since they can't be written.
--
-- Nothing is sent, nothing refused and nothing skipped while session_replication_role is 'local'.

-- Arguments of a capture trigger, taken apart.
--   i_args   as the trigger has them
--   fields   expressions for ev_type, ev_extra1 … ev_extra4; NULL: none
--   errors   'Trigger needs queue name', 'bad argument: …'
create or replace function pgque_internal.capture_options(
    i_args text[], out queue text, out skip boolean, out backup boolean, out deny boolean, out pkey text[],
    out ignored text[], out condition text, out fields text[])
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_field constant text[] := array['ev_type', 'ev_extra1', 'ev_extra2', 'ev_extra3', 'ev_extra4'];
    v_arg   text;
    v_name  text;
    v_value text;
begin
    if coalesce(cardinality(i_args), 0) = 0 then
        raise exception 'Trigger needs queue name'
            using hint = 'The queue is the first argument of a capture trigger.';
    end if;
    -- Arguments of a trigger are counted from 0.
    queue := i_args[array_lower(i_args, 1)];
    skip := false;
    backup := false;
    deny := false;
    ignored := '{}';
    fields := array_fill(null::text, array[5]);
    foreach v_arg in array i_args[array_lower(i_args, 1) + 1 :] loop
        v_name := split_part(v_arg, '=', 1);
        v_value := substr(v_arg, length(v_name) + 2);
        case
            when v_arg = any (array['skip', 'SKIP']) then
                skip := true;
            when v_arg = 'backup' then
                backup := true;
            when v_arg = 'deny' then
                deny := true;
            when v_value = '' then
                raise exception 'bad argument: %', v_arg;
            when v_name = 'pkey' then
                pkey := regexp_split_to_array(v_value, '\s*,\s*');
            when v_name = 'ignore' then
                ignored := regexp_split_to_array(v_value, '\s*,\s*');
            when v_name = 'when' then
                condition := v_value;
            when v_name = any (v_field) then
                fields[array_position(v_field, v_name)] := v_value;
            else
                raise exception 'bad argument: %', v_arg
                    using hint = 'Possible are skip, backup, deny, pkey=, ignore=, when=, ev_type= and ev_extra1= to ev_extra4=.';
        end case;
    end loop;
end
$$;

-- Columns of a table, in their order.
--   i_relation  table
--   names       their names
--   kinds       'number' (whole ones), 'boolean', 'time' (dates and timestamps) or 'other'; of a domain, that of
--               the type beneath
--   generated   whether their values are generated and stored; virtual ones are left out, a trigger does not see them
--   pkey        names of the primary key's columns, in the order of the key; NULL: it has none
create or replace function pgque_internal.capture_columns(
    i_relation oid, out names text[], out kinds text[], out generated boolean[], out pkey text[])
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    select array_agg(a.attname::text order by a.attnum),
           -- A domain has the output function of its base type.
           array_agg(case
               when t.typoutput in ('int2out'::regproc, 'int4out'::regproc, 'int8out'::regproc) then 'number'
               when t.typoutput = 'boolout'::regproc then 'boolean'
               when t.typoutput in ('date_out'::regproc, 'timestamp_out'::regproc, 'timestamptz_out'::regproc) then 'time'
               else 'other'
           end order by a.attnum),
           array_agg(a.attgenerated <> '' order by a.attnum)
    into names, kinds, generated
    from pg_attribute a
    -- A look-up for each column: as a plain join, this reads all types there are.
    cross join lateral (select t.typoutput from pg_type t where t.oid = a.atttypid offset 0) t
    where a.attrelid = i_relation and a.attnum > 0 and not a.attisdropped and a.attgenerated <> 'v';
    select array_agg(a.attname::text order by x.n)
    into pkey
    from pg_index i
    cross join lateral unnest(i.indkey::int2[]) with ordinality x (attnum, n)
    cross join lateral (
        select a.attname from pg_attribute a where a.attrelid = i.indrelid and a.attnum = x.attnum offset 0
    ) a
    where i.indrelid = i_relation and i.indisprimary and x.n <= i.indnkeyatts;
end
$$;

-- Query for the values of a row, which is its parameter, as an array of text: what the output functions of their
-- types give.
--   i_json  whether points in time are wanted as in JSON, with a T
create or replace function pgque_internal.capture_query(i_names text[], i_kinds text[], i_json boolean) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Not a cast to text: that of some types drops or adds something. Not IS NOT NULL: it looks into composites.
    return (
        select format('select array[%s]::text[] from (select ($1).*) r', string_agg(
            format(case when i_json and kind = 'time' then $f$to_json(r.%1$I) #>> '{}'$f$
                        else $f$case when r.%1$I is distinct from null then format('%%s', r.%1$I) end$f$ end, name),
            ', ' order by n))
        from unnest(i_names, i_kinds) with ordinality u (name, kind, n));
end
$$;

-- A row as a flat JSON object: whole numbers and booleans as such, everything else as a string.
--   i_data  of each column: whether it belongs in
create or replace function pgque_internal.capture_json(i_names text[], i_kinds text[], i_values text[], i_data boolean[])
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select '{' || coalesce(string_agg(
            to_json(name)::text || ':' || case
                when value is null then 'null'
                when kind = 'number' then value
                when kind = 'boolean' then case value when 't' then 'true' else 'false' end
                else to_json(value)::text
            end, ',' order by n), '') || '}'
        from unnest(i_names, i_kinds, i_values, i_data) with ordinality u (name, kind, value, data, n)
        where data);
end
$$;

-- A row url-encoded; a column that is NULL is a name without '='.
create or replace function pgque_internal.capture_url(i_names text[], i_values text[], i_data boolean[]) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select coalesce(string_agg(pgque._urlencode(name) || coalesce('=' || pgque._urlencode(value), ''), '&' order by n), '')
        from unnest(i_names, i_values, i_data) with ordinality u (name, value, data, n)
        where data);
end
$$;

-- A row as what follows the table's name in an INSERT.
create or replace function pgque_internal.capture_insert(i_names text[], i_values text[], i_data boolean[]) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select format('(%s) values (%s)', string_agg(quote_ident(name), ',' order by n),
                      string_agg(coalesce(quote_literal(value), 'null'), ',' order by n))
        from unnest(i_names, i_values, i_data) with ordinality u (name, value, data, n)
        where data);
end
$$;

-- A row's key as the condition of an UPDATE or DELETE.
create or replace function pgque_internal.capture_key(i_names text[], i_values text[], i_pkey text[]) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select string_agg(quote_ident(k.name) || coalesce('=' || quote_literal(u.value), ' is null'), ' and ' order by k.n)
        from unnest(i_pkey) with ordinality k (name, n)
        join unnest(i_names, i_values) u (name, value) on u.name = k.name);
end
$$;

-- A change as what follows SET in an UPDATE: the columns that changed, or the key where none did.
create or replace function pgque_internal.capture_update(
    i_names text[], i_old text[], i_new text[], i_data boolean[], i_pkey text[])
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select coalesce(string_agg(u.assignment, ',' order by u.n) filter (where u.data and u.new is distinct from u.old),
                        string_agg(u.assignment, ',' order by u.n) filter (where u.name = any (i_pkey)))
               || ' where ' || pgque_internal.capture_key(i_names, i_old, i_pkey)
        from (
            select name, old, new, data, n, quote_ident(name) || '=' || coalesce(quote_literal(new), 'null') as assignment
            from unnest(i_names, i_old, i_new, i_data) with ordinality u (name, old, new, data, n)
        ) u);
end
$$;

-- What a format makes of a change.
--   i_format  'json', 'url' or 'sql'
--   i_names … i_data, i_pkey  columns
--   i_old, i_new  values before and after
--   type, body  of the event; backup: the row before an UPDATE
create or replace function pgque_internal.capture_encode(
    i_format text, i_op text, i_schema text, i_table text, i_names text[], i_kinds text[], i_data boolean[], i_pkey text[],
    i_old text[], i_new text[], out type text, out body text, out backup text)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_letter constant text := case i_op when 'TRUNCATE' then 'R' else left(i_op, 1) end;
    v_row    constant text[] := coalesce(i_new, i_old);
begin
    body := '';
    case i_format
        when 'json' then
            type := format('{"op":%s,"table":[%s,%s],"pkey":[%s]}', to_json(i_op), to_json(i_schema), to_json(i_table),
                           (select string_agg(to_json(k)::text, ',' order by n) from unnest(i_pkey) with ordinality u (k, n)));
            if i_op = 'TRUNCATE' then
                body := '{}';
            else
                body := pgque_internal.capture_json(i_names, i_kinds, v_row, i_data);
            end if;
            if i_op = 'UPDATE' then
                backup := pgque_internal.capture_json(i_names, i_kinds, i_old, i_data);
            end if;
        when 'url' then
            type := v_letter;
            if i_op <> 'TRUNCATE' then
                type := type || ':' || array_to_string(i_pkey, ',');
                body := pgque_internal.capture_url(i_names, v_row, i_data);
            end if;
            if i_op = 'UPDATE' then
                backup := pgque_internal.capture_url(i_names, i_old, i_data);
            end if;
        when 'sql' then
            type := v_letter;
            case i_op
                when 'INSERT' then
                    body := pgque_internal.capture_insert(i_names, i_new, i_data);
                when 'UPDATE' then
                    body := pgque_internal.capture_update(i_names, i_old, i_new, i_data, i_pkey);
                    backup := pgque_internal.capture_insert(i_names, i_old, i_data);
                when 'DELETE' then
                    body := pgque_internal.capture_key(i_names, i_old, i_pkey);
                when 'TRUNCATE' then
                    null;
            end case;
    end case;
end
$$;

-- Query for what the arguments of a trigger give: an array of the event's type and extra columns, or NULL where no
-- event is wanted. The row is its parameter.
--   i_condition  condition, NULL: none
--   i_fields     expressions; NULL of one: the element is NULL
--   i_row        what the row is in SQL
create or replace function pgque_internal.capture_expressions(i_condition text, i_fields text[], i_row text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Line ends, since an expression may end in a comment.
    return (
        select format(E'select case when (%s\n) then array[%s]::text[] end from (select (%s).*) r', coalesce(i_condition, 'true'),
                      string_agg(format(E'(%s\n)::text', coalesce(expression, 'null')), ', ' order by n), i_row)
        from unnest(i_fields) with ordinality u (expression, n));
end
$$;

-- Sends the event of one change; the body of all capture triggers.
--   i_format      'json', 'url' or 'sql'
--   i_args, …     what the trigger knows
--   i_new, i_old  rows; only used in dynamic SQL, since their type differs from call to call
--   result        whether the change is to be skipped
--   errors        those of capture_options and of sending, and the raises below
create or replace function pgque_internal.capture(
    i_format text, i_args text[], i_when text, i_level text, i_op text, i_relation oid, i_schema text, i_table text,
    i_new record, i_old record)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
set intervalstyle = 'postgres'
set extra_float_digits = 1
set bytea_output = 'hex'
as $$
declare
    v_magic   constant text[] := array['_pgq_ev_type', '_pgq_ev_extra1', '_pgq_ev_extra2', '_pgq_ev_extra3', '_pgq_ev_extra4'];
    v_table   constant text := i_schema || '.' || i_table;
    v_options record;
    v_columns record;
    v_pkey    text[];
    v_known   boolean[];
    v_data    boolean[];
    v_query   text;
    v_new     text[];
    v_old     text[];
    v_row     text[];
    v_change  record;
    v_given   text[];
    v_event   record;
    v_field   text[];
begin
    if current_setting('session_replication_role') = 'local' then
        return false;
    end if;
    v_options := pgque_internal.capture_options(i_args);
    if i_level = 'STATEMENT' and i_op <> 'TRUNCATE' then
        raise exception 'Trigger must be for each row: % of table %', i_op, v_table;
    end if;
    if v_options.skip and (i_when = 'AFTER' or i_level = 'STATEMENT') then
        raise exception 'bad argument: skip'
            using hint = 'Only a BEFORE trigger for each row can skip a change.';
    end if;
    if v_options.deny then
        raise exception 'change not allowed: % of table %', i_op, v_table;
    end if;

    v_columns := pgque_internal.capture_columns(i_relation);
    v_pkey := coalesce(v_options.pkey, v_columns.pkey, '{}');
    if not v_pkey <@ v_columns.names then
        raise exception 'bad argument: pkey=%', array_to_string(v_pkey, ',')
            using hint = format('Not all of them are columns of table %s.', v_table);
    end if;
    if cardinality(v_pkey) = 0 and i_op = any (array['UPDATE', 'DELETE']) then
        raise exception 'Update/Delete on table without pkey: %', v_table
            using hint = 'Give the table a primary key, or the trigger an argument pkey=.';
    end if;

    -- A BEFORE trigger sees the columns that are given, not what is generated from them.
    select array_agg(u.known order by u.n),
           array_agg(u.known and u.name <> all (v_magic)
                     and (u.name = any (v_pkey) or u.name <> all (v_options.ignored))
                     and not (u.generated and i_format = 'sql') order by u.n)
    into v_known, v_data
    from (
        select name, generated, n, i_when = 'AFTER' or not generated as known
        from unnest(v_columns.names, v_columns.generated) with ordinality u (name, generated, n)
    ) u;
    v_query := pgque_internal.capture_query(v_columns.names, v_columns.kinds, i_format = 'json');
    if i_op = any (array['INSERT', 'UPDATE']) then
        execute v_query into v_new using i_new;
    end if;
    if i_op = any (array['UPDATE', 'DELETE']) then
        execute v_query into v_old using i_old;
    end if;
    v_row := coalesce(v_new, v_old);

    if i_op = 'UPDATE' then
        select coalesce(bool_or(u.name = any (v_pkey)), false) as pkey,
               coalesce(bool_or(u.data), false) as data,
               coalesce(bool_or(u.name = any (v_options.ignored)), false) as ignored
        into v_change
        from unnest(v_columns.names, v_known, v_data, v_old, v_new) u (name, known, data, old, new)
        where u.known and u.new is distinct from u.old;
        if v_change.pkey then
            raise exception 'primary key update not allowed: table %', v_table;
        end if;
        if v_change.ignored and not v_change.data then
            return v_options.skip;
        end if;
    end if;

    if v_options.condition is null and array_remove(v_options.fields, null) = '{}' then
        v_given := v_options.fields;
    elsif i_op = 'TRUNCATE' then
        execute pgque_internal.capture_expressions(v_options.condition, v_options.fields,
                                                   format('null::%I.%I', i_schema, i_table))
        into v_given;
    elsif i_op = 'DELETE' then
        execute pgque_internal.capture_expressions(v_options.condition, v_options.fields, '$1') into v_given using i_old;
    else
        execute pgque_internal.capture_expressions(v_options.condition, v_options.fields, '$1') into v_given using i_new;
    end if;
    if v_given is null then
        return v_options.skip;
    end if;

    v_event := pgque_internal.capture_encode(i_format, i_op, i_schema, i_table, v_columns.names, v_columns.kinds, v_data,
                                             v_pkey, v_old, v_new);
    v_field := array[v_event.type, v_table, case when v_options.backup then v_event.backup end, null, null];
    for i in 1 .. 5 loop
        if v_options.fields[i] is not null then
            v_field[i] := v_given[i];
        end if;
        v_field[i] := coalesce(v_row[array_position(v_columns.names, v_magic[i])], v_field[i]);
    end loop;
    perform pgque.insert_event(v_options.queue, v_field[1], v_event.body, v_field[2], v_field[3], v_field[4], v_field[5]);
    return v_options.skip;
end
$$;

-- Trigger that sends changes as JSON.
--   event type  {"op":"INSERT|UPDATE|DELETE|TRUNCATE","table":[schema,table],"pkey":[column, …]}
--   event data  flat object of the new row, of a DELETE the old one, of a TRUNCATE {}; whole numbers and booleans as
--               such, NULL as null, everything else as a string, points in time in ISO 8601
--   errors      'Trigger needs queue name', 'bad argument: …', 'change not allowed', 'Update/Delete on table without
--               pkey', 'primary key update not allowed', 'queue not found: …'
create or replace function pgque.jsontriga() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_skip boolean;
begin
    -- Dynamic, since a plan does not outlive a change of the types of new and old, which are NULL by turns.
    execute 'select pgque_internal.capture($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)' into v_skip
    using 'json'::text, tg_argv, tg_when, tg_level, tg_op, tg_relid, tg_table_schema::text, tg_table_name::text, new, old;
    if v_skip then
        return null;
    elsif tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end
$$;

-- Trigger that sends changes url-encoded.
--   event type  I:, U: or D: with the names of the key's columns, separated by commas; of a TRUNCATE R
--   event data  column=value&…, of the new row, of a DELETE the old one; a column that is NULL has no '='; booleans
--               are t and f
--   errors      as jsontriga
create or replace function pgque.logutriga() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_skip boolean;
begin
    -- Dynamic, since a plan does not outlive a change of the types of new and old, which are NULL by turns.
    execute 'select pgque_internal.capture($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)' into v_skip
    using 'url'::text, tg_argv, tg_when, tg_level, tg_op, tg_relid, tg_table_schema::text, tg_table_name::text, new, old;
    if v_skip then
        return null;
    elsif tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end
$$;

-- Trigger that sends changes as parts of SQL statements.
--   event type  I, U, D or of a TRUNCATE R
--   event data  I: (column,…) values ('value',…)
--               U: column='value',… where key='value', with the columns that changed, or the key where none did
--               D: key='value'
--               R: nothing
--   errors      as jsontriga
create or replace function pgque.sqltriga() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_skip boolean;
begin
    -- Dynamic, since a plan does not outlive a change of the types of new and old, which are NULL by turns.
    execute 'select pgque_internal.capture($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)' into v_skip
    using 'sql'::text, tg_argv, tg_when, tg_level, tg_op, tg_relid, tg_table_schema::text, tg_table_name::text, new, old;
    if v_skip then
        return null;
    elsif tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end
$$;
