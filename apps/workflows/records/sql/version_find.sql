-- Finds the graph of a version.
-- $1 workspace, $2 definition, $3 version
select graph from workflow_versions where workspace_id = $1 and definition_id = $2 and version = $3
