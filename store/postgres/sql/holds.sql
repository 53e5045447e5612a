-- Lists the holds of all queues, the newest job first.
-- $1 uuid job before which the page begins (null: begin with the newest)   $2 integer limit
select job_id, queue, reason, actor, held_at from sluice.hold
where job_id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by job_id desc
limit $2::integer
