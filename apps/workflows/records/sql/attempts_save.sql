-- Stores after how many attempts the executions of a workspace, or of one definition in it, are given up.
-- $1 workspace, $2 definition, empty: all that say nothing else, $3 attempts, 0: none of its own
insert into workflow_attempts (workspace_id, definition_id, max_attempts) values ($1, $2, $3)
on conflict (workspace_id, definition_id) do update set max_attempts = excluded.max_attempts
