-- 0010 Functions for other languages: which roles may use them where, and when a holder last claimed from a queue
-- that has an interval.
-- locks: none on tables that exist.
-- works with programs from: 8

-- What a role may do through the functions. Written by grant_worker, grant_producer, grant_operator and revoke_grants.
create table sluice.queue_grant (
    role  regrole not null,
    may   text    not null check (may in ('work', 'produce', 'operate')),
    queue text    not null, -- '*': every queue
    primary key (role, may, queue)
);

-- Only queues with an interval have rows, and only for holders that claim by functions; programs remember it themselves.
create table sluice.pace (
    queue      text        not null,
    holder     text        not null,
    claimed_at timestamptz not null,
    primary key (queue, holder)
);

-- Jobs at whose end others are to be looked at again, after the transactions that saw each other half are committed.
-- Claims by functions take it in.
create table sluice.look_again (
    job_id uuid not null
);

-- Which text of the functions the database has. One row.
create table sluice.function_set (
    one       boolean     primary key default true check (one),
    version   integer     not null,
    checksum  text        not null,
    installed timestamptz not null default now()
);
