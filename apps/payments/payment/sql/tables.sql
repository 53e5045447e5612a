-- The tables of payments, for SQLite and PostgreSQL alike. Instants are microseconds since 1970.

create table if not exists payment (
    id            text   primary key,
    payer         text   not null,
    payee         text   not null,
    cents         bigint not null check (cents > 0),
    currency      text   not null,
    due_at        bigint not null,
    status        text   not null check (status in ('SCHEDULED', 'ACCEPTED', 'PROCESSING', 'FAILED')),
    failure       text   not null default '', -- why its job is dead or cancelled; empty: it is neither
    init_workflow text   not null, -- the run of phase A that stored it
    created_at    bigint not null,
    accepted_at   bigint,
    processing_at bigint
);

-- Which runs of phase B executed a payment: one each, or something is wrong.
create table if not exists payment_run (
    payment_id  text   not null,
    workflow_id text   not null,
    run_id      text   not null,
    executed_at bigint not null, -- by the first try of the activity
    primary key (payment_id, run_id)
);

-- Where the money went. No key keeps a second entry out: the guard is the move of the status, and the proof counts.
create table if not exists payment_entry (
    payment_id text   not null,
    account    text   not null,
    cents      bigint not null
);
create index if not exists payment_entry_payment on payment_entry (payment_id);

create table if not exists payment_settlement (
    payment_id text   primary key,
    route      text   not null,
    fee_cents  bigint not null,
    settled_at bigint not null
);

create table if not exists payment_notice (
    payment_id text   not null,
    party      text   not null,
    sent_at    bigint not null,
    primary key (payment_id, party)
);
