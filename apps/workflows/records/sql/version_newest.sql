-- Finds the newest version of a definition; 0: it has none.
-- $1 workspace, $2 definition
select coalesce(max(version), 0) from workflow_versions where workspace_id = $1 and definition_id = $2
