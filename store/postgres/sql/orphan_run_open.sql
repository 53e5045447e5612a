-- Lists jobs with a run that may be open, unless somebody lets the job run beside it. The statement locks the runs, so
-- that no other transaction deletes them before the jobs wait for them.
-- $1 uuid[] jobs
select job_id from sluice.orphan_run
where job_id = any ($1::uuid[]) and not beside
order by job_id, ref
for share
