-- Stores a definition, or changes its name.
-- $1 workspace, $2 id, $3 name, $4 now
insert into workflow_definitions (workspace_id, id, name, created_at) values ($1, $2, $3, $4)
on conflict (workspace_id, id) do update set name = excluded.name
