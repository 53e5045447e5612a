-- Lists the workspaces by id, or the one that has it.
-- $1 id, empty: all
select id, name, plan, coalesce(a.max_attempts, 0)
from workspaces left join workflow_attempts a on a.workspace_id = id and a.definition_id = ''
where $1 = '' or id = $1 order by id
