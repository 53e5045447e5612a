-- 0024 Followers: statements of users that are run with each move of a queue's jobs.
-- locks: none on tables that exist.
-- works with programs from: 8
-- Triggers run them, so that they run with the moves of older programs too.

create table sluice.follower (
    name      text        primary key,
    queue     text        not null,
    states    text        not null default '', -- that are told, with commas in between; empty: all
    statement text        not null,
    made_at   timestamptz not null default now()
);
