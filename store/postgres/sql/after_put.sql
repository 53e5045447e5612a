-- Notes what jobs are to run after.
-- $1 uuid[] ids of the others   $2 uuid[] ids of the jobs
insert into sluice.job_after (after_id, job_id)
select * from unnest($1::uuid[], $2::uuid[]) as g(after_id, job_id)
on conflict do nothing
