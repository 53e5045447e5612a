-- Deletes and returns the counts of function calls, to add them up. The caller holds the lock of stat_fold.sql.
-- $1 integer limit
delete from sluice.stat_call
where ctid = any (array(select ctid from sluice.stat_call limit $1::integer))
returning at, queue, tenant, event, jobs, waits, runs, totals
