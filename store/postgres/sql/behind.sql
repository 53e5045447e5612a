-- Lists some jobs that run after a job, or wait for it now. The bounds are of rows, and the order names the job too, because
-- only the primary key has that order: by old statistics the other index of job_after looks as good, and is read whole.
-- $1 uuid id   $2 integer limit
select id
from (
    (select job_id as id from sluice.job_after
     where (after_id, job_id) >= ($1::uuid, '00000000-0000-0000-0000-000000000000'::uuid)
       and (after_id, job_id) <= ($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
     order by after_id, job_id
     limit $2::integer)
    union
    (select id from sluice.live where blocked_by = $1::uuid and id <> $1::uuid limit $2::integer)
) f
order by id
limit $2::integer
