-- Lists the holds of given jobs, the newest job first.
-- ?1 jobs as a JSON array of hexadecimal texts   ?2 job before which the page begins   ?3 limit
select h.job_id, h.queue, h.reason, h.actor, h.held_at, h.behind
from json_each(?1) given
cross join sluice_hold h on h.job_id = unhex(given.value)
where h.job_id < ?2
order by h.job_id desc
limit ?3 + 0
