-- Tables of the inbox, which R__78_inbox.sql explains.
--
-- What this topic guarantees
--   * Each message of a consumer has one row at most in each of the three tables.

create table pgque_internal.inbox_ring (
    inbox_only      bool constraint inbox_ring_pkey primary key default true,
    inbox_slot      int2 not null default 0,
    inbox_switched  timestamptz not null default pg_catalog.now(),
    inbox_retention interval not null default '7 days',
    constraint inbox_ring_only check (inbox_only)
);
comment on table pgque_internal.inbox_ring is
    'One row: which of the three tables takes what is handled now, since when, and how long it is to be remembered.';
insert into pgque_internal.inbox_ring default values;

create table pgque_internal.inbox_0 (
    queue_id    int4,
    consumer_id int4,
    msg_id      int8,
    constraint inbox_0_pkey primary key (queue_id, consumer_id, msg_id)
);
comment on table pgque_internal.inbox_0 is 'Messages that were handled, of one span of time.';

create table pgque_internal.inbox_1 (
    queue_id    int4,
    consumer_id int4,
    msg_id      int8,
    constraint inbox_1_pkey primary key (queue_id, consumer_id, msg_id)
);
comment on table pgque_internal.inbox_1 is 'Messages that were handled, of one span of time.';

create table pgque_internal.inbox_2 (
    queue_id    int4,
    consumer_id int4,
    msg_id      int8,
    constraint inbox_2_pkey primary key (queue_id, consumer_id, msg_id)
);
comment on table pgque_internal.inbox_2 is 'Messages that were handled, of one span of time.';
