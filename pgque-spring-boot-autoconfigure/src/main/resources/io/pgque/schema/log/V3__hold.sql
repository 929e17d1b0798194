-- Table of the keys whose messages wait for each other, which R__52_hold.sql explains.
--
-- What this topic guarantees
--   * A message has one place at most in the order of its key, and keeps it until it is done.
--   * The places of a consumer end with its subscription.

-- The foreign key needs a lock that waits for transactions which have received, and lets no other consumer move
-- meanwhile. So it is asked for in short turns, between which everybody goes on.
do $$
declare
    v_before text := pg_catalog.current_setting('lock_timeout');
    v_locked boolean := false;
begin
    for i in 1 .. 600 loop
        begin
            set local lock_timeout = '200ms';
            lock table pgque_internal.sub in share row exclusive mode;
            v_locked := true;
        exception
            when lock_not_available then
                perform pg_catalog.pg_sleep(0.5);
        end;
        exit when v_locked;
    end loop;
    if not v_locked then
        raise exception 'another transaction keeps the consumers locked: the upgrade could not begin'
            using errcode = 'lock_not_available', hint = 'See pg_locks for pgque_internal.sub. End that transaction, and start again.';
    end if;
    perform pg_catalog.set_config('lock_timeout', v_before, true);
end
$$;

create table pgque_internal.hold (
    hold_sub     bigint not null constraint hold_sub_fkey references pgque_internal.sub on delete cascade,
    hold_msg     bigint not null,
    hold_key     text not null,
    hold_place   bigint generated always as identity (sequence name pgque_internal.hold_place_seq),
    hold_checked timestamptz not null default pg_catalog.now(),
    hold_delayed boolean not null,
    constraint hold_pkey primary key (hold_sub, hold_msg)
);
-- By the key's hash, since keys of any length must fit.
create index hold_key_idx on pgque_internal.hold (hold_sub, pg_catalog.hashtextextended(hold_key, 0), hold_place);
comment on table pgque_internal.hold is
    'Messages that have failed and are to come again, and those of the same key that wait behind them.';
comment on column pgque_internal.hold.hold_place is
    'Order of the messages of a key. Not that of their ids: those of concurrent transactions commit in another.';
comment on column pgque_internal.hold.hold_checked is
    'When the message was last known to come again; maint() looks after it when that is long ago.';
comment on column pgque_internal.hold.hold_delayed is
    'Whether it has failed, and comes again after its own delay; otherwise it was held back, and comes when the first does.';

-- They take other arguments now: the repeatable migrations create them anew.
drop function if exists pgque_internal.take_tick(integer, bigint, boolean, boolean);
drop function if exists pgque_internal.tick_if_new(integer, bigint, boolean);
drop function if exists pgque_internal.open_merged(bigint, integer, bigint, bigint);
drop function if exists pgque_internal.has_work(text, text);
drop function if exists pgque_internal.merged_end_tick(pgque.tick, integer);
