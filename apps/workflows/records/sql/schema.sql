-- The application's tables, beside Sluice's in the same database. The statements of this folder are for SQLite and
-- PostgreSQL alike. Instants are microseconds since 1970.

create table if not exists workspaces (
    id         text not null primary key,
    name       text not null,
    plan       text not null,
    created_at bigint not null
);

create table if not exists workflow_definitions (
    workspace_id text not null,
    id           text not null,
    name         text not null,
    created_at   bigint not null,
    primary key (workspace_id, id)
);

-- After how many attempts executions are given up, where that is not as the queue says: in a definition, or with an empty
-- one in its whole workspace.
create table if not exists workflow_attempts (
    workspace_id  text not null,
    definition_id text not null,
    max_attempts  integer not null,
    primary key (workspace_id, definition_id)
);

-- A version is never changed.
create table if not exists workflow_versions (
    workspace_id  text not null,
    definition_id text not null,
    version       integer not null,
    graph         text not null,
    created_at    bigint not null,
    primary key (workspace_id, definition_id, version)
);

-- The id is the job's. No foreign keys: what was executed stays known when the workspace is gone.
create table if not exists workflow_executions (
    id            text not null primary key,
    workspace_id  text not null,
    definition_id text not null,
    version       integer not null,
    variables     text not null,
    state         text not null check (state in ('waiting', 'running', 'completed', 'failed')),
    run_id        text not null,
    error         text not null,
    created_at    bigint not null,
    started_at    bigint not null,
    ended_at      bigint not null
);

create index if not exists workflow_executions_workspace on workflow_executions (workspace_id, created_at);

-- One row for each run that has begun, by the engine's own id of it.
create table if not exists workflow_runs (
    execution_id text not null,
    run_id       text not null,
    started_at   bigint not null,
    primary key (execution_id, run_id)
);

create table if not exists workflow_steps (
    execution_id text not null,
    run_id       text not null,
    number       integer not null,
    node         text not null,
    kind         text not null,
    result       text not null,
    ended_at     bigint not null,
    primary key (execution_id, run_id, number)
);
