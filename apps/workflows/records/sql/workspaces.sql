-- Lists the workspaces by id, or the one that has it.
-- $1 id, empty: all
select id, name, plan from workspaces where $1 = '' or id = $1 order by id
