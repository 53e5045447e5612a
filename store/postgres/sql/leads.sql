-- Lists the tasks with their present or last leader.
select task, holder, since, until, until > clock_timestamp() as held from sluice.lead order by task
