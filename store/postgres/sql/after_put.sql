-- Records the jobs that other jobs are to run after.
-- $1 uuid[] ids of the jobs to run after   $2 uuid[] ids of the jobs that wait   $3 text[] failure rules
insert into sluice.job_after (after_id, job_id, rule)
select * from unnest($1::uuid[], $2::uuid[], $3::text[]) as g(after_id, job_id, rule)
on conflict do nothing
