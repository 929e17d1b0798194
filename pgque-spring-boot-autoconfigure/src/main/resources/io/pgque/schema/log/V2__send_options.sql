-- Tables behind the options of a send.
--
-- What this topic guarantees
--   * Idempotency keys are unique by a constraint; they refer to no queue by a foreign key, whose check would
--     lock the queue's row in every send, and so keep rotation from it for as long as senders overlap.

create table pgque.idem (
    queue_id   int4 not null,
    idem_key   text not null,
    event_id   bigint,
    expires_at timestamptz not null,
    idem_hash  bytea,
    constraint idem_pkey primary key (queue_id, idem_key)
);
create index idem_expires_idx on pgque.idem (expires_at, queue_id);
comment on table pgque.idem is 'Keys of idempotent sends, until they expire.';
comment on column pgque.idem.event_id is 'Event that the key stands for.';
comment on column pgque.idem.idem_hash is 'SHA-256 of type and payload; NULL: unknown, and equal to any.';
