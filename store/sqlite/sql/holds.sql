-- Lists the holds of all queues, the newest job first.
-- ?1 job before which the page begins   ?2 limit
select job_id, queue, reason, actor, held_at, behind from sluice_hold
where job_id < ?1
order by job_id desc
limit ?2 + 0
