-- Reads a stored bucket.
-- ?1 every_s   ?2 at   ?3 queue
select every_s, at, queue, enqueued, requeued, claimed, dispatched, completed, dead, cancelled, uncertain,
       failed, released, recovered, start_failed, wait, run, total, level, tenants
from sluice_stat
where every_s = ?1 and at = ?2 and queue = ?3
