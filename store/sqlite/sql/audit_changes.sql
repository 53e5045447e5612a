-- Lists a page of the changes of one object, such as a queue, the newest first, along the index sluice_audit_change: a
-- dispatcher adds an entry of its queue in each cycle.
-- ?1 object   ?2 name   ?3 before (0: from the newest)   ?4 limit
-- ?5 actor, or the first words of it ('': all)   ?6 after
select seq, at, actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id
from sluice_audit indexed by sluice_audit_change
where object = ?1 and name = ?2 and event = 'change' and (?3 = 0 or seq < ?3) and seq > ?6
  and (?5 = '' or actor = ?5 or substr(actor, 1, length(?5) + 1) = ?5 || ' ')
order by seq desc
limit ?4 + 0
