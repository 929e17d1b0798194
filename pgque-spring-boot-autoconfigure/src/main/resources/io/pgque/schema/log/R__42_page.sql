-- Pages: a batch that is larger than memory, read part by part.
--
-- What this topic guarantees
--   * Pages come in the order of event ids, without gap or repetition, and without a cursor or a transaction held
--     open between them; reading one again gives the same.
--   * Each page of receive_page() reads the rest of the batch. With a map, made by batch_pages() in
--     one pass over ids and places, a page reads its own part of the tables only, so that all pages together
--     cost about what one read of the whole batch does.
--   * A map is a hint: if rows have moved since (VACUUM FULL and CLUSTER write a new file), the page is found
--     without it. Whoever uses a map counts, though: a page has page_rows rows.

-- Query for one page of what a query finds; $1 is the most rows, $2 the most bytes of data.
--   i_batch_id  batch, for the column of that name
--   i_events    query for events, columns as in the event tables, unordered
create or replace function pgque_internal.page_query(i_batch_id bigint, i_events text) returns text
language plpgsql
as $$
begin
    return format($query$
        select ev_id, %s::bigint, ev_type, ev_data, ev_retry, ev_time, ev_extra1, ev_extra2, ev_extra3, ev_extra4, more
        from (
            select *,
                   row_number() over w as n,
                   lead(true, 1, false) over w as more,
                   sum(octet_length(coalesce(ev_data, ''))) over w - octet_length(coalesce(ev_data, '')) as before
            from (select * from (%s) e order by ev_id limit $1::bigint + 1) e
            window w as (order by ev_id rows unbounded preceding)
        ) e
        where n <= $1 and before < $2
        order by ev_id
        $query$, i_batch_id, i_events);
end
$$;

-- Query for one page of an open batch, of the events behind an id; parameters as above.
create or replace function pgque_internal.page_query(i_batch pgque_internal.batch, i_after bigint) returns text
language plpgsql
as $$
begin
    return pgque_internal.page_query(i_batch.batch_id, pgque_internal.batch_query(i_batch, i_after));
end
$$;

-- First page of an open batch. What is likely to be small is read at once. For the rest, a look at what the batch holds
-- comes first: one that fits into the page is read without counting its rows one by one, which costs more than reading
-- them.
--   i_max_rows, i_max_bytes  of the page
--   result                   the page, its query with parameters as of page_query; NULL: the batch holds nothing for its
--                            consumer
create or replace function pgque_internal.first_page(i_batch pgque_internal.batch, i_max_rows integer, i_max_bytes bigint)
returns pgque_internal.page
language plpgsql
as $$
declare
    v_few    constant int4 := least(i_max_rows, 100);
    v_small  constant bigint := least(i_max_bytes, 65536);
    v_read   text := 'pgque_internal' || substr(i_batch.queue_prefix, 6);
    v_window record;
    v_rows   bigint;
    v_bytes  bigint;
    v_page   pgque_internal.page;
begin
    v_page.batch_id := i_batch.batch_id;
    v_window := pgque_internal.window_ranges(i_batch.prev_snapshot, i_batch.next_snapshot);
    if i_batch.expected <= v_few then
        execute 'select ' || v_read || '_few($1, $2, $3, $4, $5, $6, $7, $8, $9)' into v_page.events
        using i_batch.slots, v_window.lo, v_window.hi, i_batch.sub_id, i_batch.prefix, i_batch.part, i_batch.parts,
              v_few, v_small;
        if cardinality(v_page.events) = 0 then
            return null;
        end if;
        if v_page.events is not null then
            return v_page;
        end if;
    end if;
    execute 'select s.n, s.bytes from ' || v_read || '_size($1, $2, $3, $4, $5, $6, $7, $8) s' into v_rows, v_bytes
    using i_batch.slots, v_window.lo, v_window.hi, i_batch.sub_id, i_batch.prefix, i_batch.part, i_batch.parts,
          i_max_rows::bigint + 1;
    if v_rows = 0 then
        return null;
    end if;
    v_page.query := pgque_internal.batch_query(i_batch, null);
    if v_rows > i_max_rows or v_bytes >= i_max_bytes then
        v_page.query := pgque_internal.page_query(i_batch.batch_id, v_page.query);
    else
        v_page.query := format('select ev_id, %s::bigint, ev_type, ev_data, ev_retry, ev_time,'
                               ' ev_extra1, ev_extra2, ev_extra3, ev_extra4, false from (%s) e order by ev_id',
                               i_batch.batch_id, v_page.query);
    end if;
    return v_page;
end
$$;

-- Rows of a page whose events were read at once. Without settings of its own, so that it becomes a part of the statement
-- that calls it.
create or replace function pgque_internal.page_rows(i_page pgque_internal.page)
returns table (msg_id bigint, batch_id bigint, type text, payload text, retry_count int4, created_at timestamptz,
               extra1 text, extra2 text, extra3 text, extra4 text, more boolean)
language sql stable
as $$
    select e.ev_id, (i_page).batch_id, e.ev_type, e.ev_data, e.ev_retry, e.ev_time,
           e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4, false
    from pg_catalog.unnest((i_page).events) e
    order by e.ev_id
$$;

-- Refuses a page without room for a row.
create or replace function pgque_internal.check_page(i_max_rows integer, i_max_bytes bigint) returns void
language plpgsql
as $$
begin
    if coalesce(i_max_rows, 0) < 1 or coalesce(i_max_bytes, 0) < 1 then
        raise exception 'a page needs max_rows >= 1 and max_bytes >= 1, not % and %', i_max_rows, i_max_bytes;
    end if;
end
$$;

-- Next page of a batch.
--   i_batch_id   batch; error 'batch not found: …' when it is not open any more
--   i_after      id of the last row that was read
--   i_max_rows, i_max_bytes, result  as of receive_batch
create or replace function pgque.receive_page(i_batch_id bigint, i_after bigint, i_max_rows integer, i_max_bytes bigint)
returns table (msg_id bigint, batch_id bigint, type text, payload text, retry_count int4, created_at timestamptz,
               extra1 text, extra2 text, extra3 text, extra4 text, more boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch;
begin
    perform pgque_internal.check_page(i_max_rows, i_max_bytes);
    v_batch := pgque_internal.find_batch(i_batch_id, false);
    if v_batch.batch_id is null then
        raise exception 'batch not found: %', coalesce(i_batch_id::text, 'NULL');
    end if;
    return query execute pgque_internal.page_query(v_batch, i_after) using i_max_rows, i_max_bytes;
end
$$;

-- Files of a queue's event tables: while they are the same, rows stay where they are.
create or replace function pgque_internal.leaf_files(i_prefix text) returns text[]
language sql
set search_path = pg_catalog, pg_temp
as $$
    select array_agg(pg_relation_filepath(l.leaf::regclass) order by l.n)
    from unnest(pgque_internal.leaves(i_prefix)) with ordinality l (leaf, n)
$$;

-- Map of the pages of an open batch.
--   i_batch_id  batch; error 'batch not found: …' when it is not open any more
--   i_after     id of the last row that was read; NULL: none
--   i_max_rows  most rows of a page
--   result      the pages behind i_after in their order, to be given to receive_mapped_page
create or replace function pgque.batch_pages(i_batch_id bigint, i_after bigint, i_max_rows integer)
returns setof pgque.batch_page
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.find_batch(i_batch_id, false);
begin
    perform pgque_internal.check_page(i_max_rows, 1::bigint);
    if v_batch.batch_id is null then
        raise exception 'batch not found: %', coalesce(i_batch_id::text, 'NULL');
    end if;
    return query execute format($query$
        select lag(max(upto), 1, $2) over (order by page), max(upto), sum(n)::int4, sum(bytes)::bigint,
               array[min(low) filter (where slot = 0), min(low) filter (where slot = 1), min(low) filter (where slot = 2)],
               array[max(high) filter (where slot = 0), max(high) filter (where slot = 1), max(high) filter (where slot = 2)],
               $3
        from (
            select page, slot, max(ev_id) as upto, count(*) as n, sum(bytes) as bytes, min(place) as low, max(place) as high
            from (
                select ev_id, slot, place, bytes, (row_number() over (order by ev_id) - 1) / $1 as page
                from (%s) e
            ) e
            group by page, slot
        ) p
        group by page
        order by page
        $query$, pgque_internal.batch_query(v_batch, i_after,
                                            'e.ev_id, e.ev_slot as slot, e.ctid as place, octet_length(e.ev_data) as bytes'))
    using i_max_rows, greatest(i_after, v_batch.prefix, 0::bigint), pgque_internal.leaf_files(v_batch.queue_prefix);
end
$$;

-- Query for the events of a mapped page that are behind an id, columns as in the event tables, unordered.
create or replace function pgque_internal.mapped_query(i_batch pgque_internal.batch, i_page pgque.batch_page, i_after bigint)
returns text
language plpgsql
as $$
declare
    v_window  record;
    v_leaf    text[] := pgque_internal.leaves(i_batch.queue_prefix);
    v_inside  text;
    v_queries text[] := '{}';
begin
    select w.lo, w.hi into v_window from pgque_internal.window_ranges(i_batch.prev_snapshot, i_batch.next_snapshot) w;
    -- Written so that no index can take it: the places are to be the way in.
    v_inside := case
        when cardinality(v_window.lo) = 1
            then format('(e.ev_txid >= %L::xid8 and e.ev_txid < %L::xid8) is true', v_window.lo[1], v_window.hi[1])
        else format('exists (select from unnest(%L::xid8[], %L::xid8[]) r (lo, hi)'
                    ' where e.ev_txid >= r.lo and e.ev_txid < r.hi offset 0)', v_window.lo, v_window.hi)
    end;
    for i in 1 .. 3 loop
        if i_page.page_low[i] is not null then
            v_queries := v_queries || format(
                'select e.* from %s e where e.ctid between %L::tid and %L::tid and e.ev_id <= %s and %s and %s',
                v_leaf[i], i_page.page_low[i], i_page.page_high[i], i_page.page_upto,
                pgque_internal.batch_filter(i_batch, greatest(i_page.page_after, i_after)), v_inside);
        end if;
    end loop;
    if cardinality(v_queries) = 0 then
        return 'select e.* from pgque.event_template e where false';
    end if;
    return array_to_string(v_queries, ' union all ');
end
$$;

-- Page of a batch by a map.
--   i_batch_id   batch; error 'batch not found: …' when it is not open any more
--   i_after      id of the last row that was read; NULL: none
--   i_page       page, of batch_pages
--   i_max_bytes  as of receive_batch
--   more         whether this page has a row behind this one: of the last row, whether it was cut by i_max_bytes
--   result       rows in the order of their ids
create or replace function pgque.receive_mapped_page(
    i_batch_id bigint, i_after bigint, i_page pgque.batch_page, i_max_bytes bigint)
returns table (msg_id bigint, batch_id bigint, type text, payload text, retry_count int4, created_at timestamptz,
               extra1 text, extra2 text, extra3 text, extra4 text, more boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch pgque_internal.batch := pgque_internal.find_batch(i_batch_id, false);
    v_query text;
begin
    perform pgque_internal.check_page(i_page.page_rows, i_max_bytes);
    if v_batch.batch_id is null then
        raise exception 'batch not found: %', coalesce(i_batch_id::text, 'NULL');
    end if;
    if i_page.page_files = pgque_internal.leaf_files(v_batch.queue_prefix) then
        v_query := pgque_internal.mapped_query(v_batch, i_page, i_after);
    else
        v_query := format('select * from (%s) e where e.ev_id <= %s',
                          pgque_internal.batch_query(v_batch, greatest(i_page.page_after, i_after)), i_page.page_upto);
    end if;
    if i_page.page_bytes <= i_max_bytes then
        return query execute format(
            'select ev_id, %s::bigint, ev_type, ev_data, ev_retry, ev_time, ev_extra1, ev_extra2, ev_extra3, ev_extra4, false'
            ' from (%s) e order by ev_id', v_batch.batch_id, v_query);
        return;
    end if;
    return query execute pgque_internal.page_query(v_batch.batch_id, v_query) using i_page.page_rows, i_max_bytes;
end
$$;
