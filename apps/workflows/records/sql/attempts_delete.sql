-- Deletes the attempts of a definition, or of a workspace and all definitions in it.
-- $1 workspace, $2 definition, empty: all
delete from workflow_attempts where workspace_id = $1 and ($2 = '' or definition_id = $2)
