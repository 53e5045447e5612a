-- The jobs of which a run may be open, and that nobody has let run beside it. The runs are locked, so that none is
-- forgotten before the jobs wait for it.
-- $1 uuid[] jobs
select job_id from sluice.orphan_run
where job_id = any ($1::uuid[]) and not beside
order by job_id, ref
for share
