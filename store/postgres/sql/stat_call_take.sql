-- Takes what calls of functions did, to add it up. Whoever does that is alone.
-- $1 integer limit
delete from sluice.stat_call
where ctid = any (array(select ctid from sluice.stat_call limit $1::integer))
returning at, queue, tenant, event, jobs, waits, runs, totals
