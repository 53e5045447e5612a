-- Reads entries of the audit in order, as they are stored.
-- ?1 above   ?2 up to   ?3 limit
select seq, at, actor, object, name, event, from_state, to_state, reason, generation, job_id, act_id, before, after
from sluice_audit
where seq > ?1 and seq <= ?2
order by seq
limit ?3 + 0
