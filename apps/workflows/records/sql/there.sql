-- Says what of an execution's workspace, definition and version is there: 1 or 0 for each.
-- $1 workspace, $2 definition, $3 version
select (select count(*) from workspaces where id = $1),
    (select count(*) from workflow_definitions where workspace_id = $1 and id = $2),
    (select count(*) from workflow_versions where workspace_id = $1 and definition_id = $2 and version = $3)
