-- The application's own tables. PgQue's are in a schema of their own, pgque, which is there before this runs.

create table orders (
    id            bigint generated always as identity primary key,
    customer      text not null,
    total         numeric(12, 2) not null,

    -- A card that the customer brought later; null: the card on file.
    card          text,

    -- How often each consumer has handled the order's event. Once is the rule; twice is possible after a crash,
    -- and must do no harm.
    times_billed  integer not null default 0,
    times_shipped integer not null default 0,

    -- How far the order is, derived in one place.
    state         text generated always as (
        case
            when times_billed > 0 and times_shipped > 0 then 'COMPLETED'
            when times_billed > 0 then 'PAID'
            when times_shipped > 0 then 'SHIPPED'
            else 'PLACED'
        end) stored
);
