-- Deletes a version, or all of a definition, or all of a workspace.
-- $1 workspace, $2 definition, empty: all, $3 version, 0: all
delete from workflow_versions
where workspace_id = $1 and ($2 = '' or definition_id = $2) and ($3 = 0 or version = $3)
