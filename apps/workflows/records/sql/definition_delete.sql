-- Deletes a definition, or all of a workspace.
-- $1 workspace, $2 id, empty: all
delete from workflow_definitions where workspace_id = $1 and ($2 = '' or id = $2)
