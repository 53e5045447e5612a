-- Deletes a workspace.
-- $1 id
delete from workspaces where id = $1
