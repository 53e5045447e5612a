-- Who leads which task, or led it last.
select task, holder, since, until from sluice_lead order by task
