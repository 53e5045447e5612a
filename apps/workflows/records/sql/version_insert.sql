-- Stores a version, unless it is there.
-- $1 workspace, $2 definition, $3 version, $4 graph, $5 now
insert into workflow_versions (workspace_id, definition_id, version, graph, created_at) values ($1, $2, $3, $4, $5)
on conflict (workspace_id, definition_id, version) do nothing
