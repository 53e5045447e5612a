-- Lists the holds of given jobs, of one queue or of all, the newest job first.
-- $1 uuid job before which the page begins (null: begin with the newest)   $2 integer limit   $3 text queue ('': all)   $4 uuid[] jobs
select job_id, queue, reason, actor, held_at from sluice.hold
where job_id = any ($4::uuid[]) and job_id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and ($3::text = '' or queue = $3::text)
order by job_id desc
limit $2::integer
