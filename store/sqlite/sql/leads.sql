-- Lists the tasks with their present or last leader.
select task, holder, since, until from sluice_lead order by task
