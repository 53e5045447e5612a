-- Who leads which task, or led it last.
select task, holder, since, until, until > clock_timestamp() as held from sluice.lead order by task
