-- Types of first pages, which R__42_page.sql explains.
--
-- What this topic guarantees
--   * A page is either its events or a query for them.

alter type pgque_internal.batch add attribute expected bigint;
comment on column pgque_internal.batch.expected is 'Number of events by the sequence.';

-- First page of a batch: its events, when they are few, or else a query for them.
create type pgque_internal.page as (
    batch_id bigint,
    events   pgque.event_template[],
    query    text
);
