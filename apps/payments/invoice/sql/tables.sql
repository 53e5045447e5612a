-- The table of invoices, for SQLite and PostgreSQL alike. Instants are microseconds since 1970.
create table if not exists invoice (
    id       text   primary key,
    customer text   not null,
    cents    bigint not null,
    due_at   bigint not null,
    status   text   not null default 'ISSUED' check (status in ('ISSUED', 'SENT', 'FAILED')),
    failure  text   not null default '', -- why its job is dead or cancelled; empty: it is neither
    sent_at  bigint
);
