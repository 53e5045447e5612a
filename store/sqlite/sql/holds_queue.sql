-- Lists the holds of a queue, the newest job first.
-- ?1 queue   ?2 job before which the page begins   ?3 limit
select job_id, queue, reason, actor, held_at, behind from sluice_hold
where queue = ?1 and job_id < ?2
order by job_id desc
limit ?3 + 0
