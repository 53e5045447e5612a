-- Finds after how many attempts an execution is given up: as its definition says, or else its workspace.
-- $1 workspace, $2 definition
select max_attempts from workflow_attempts
where workspace_id = $1 and definition_id in ($2, '') and max_attempts > 0
order by definition_id desc limit 1
