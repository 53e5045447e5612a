-- Lists a page of the audit of one object, such as a queue or a tenant, the newest first, along the index
-- sluice_audit_object.
-- ?1 object   ?2 name   ?3 unused, but not null   ?4 before (0: from the newest)   ?5 limit
-- ?6 actor, or the first words of it ('': all)   ?7 event ('': all)   ?8 after
select seq, at, actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id
from sluice_audit
where object = ?1 and object <> 'job' and name = ?2 and ?3 = ?3 and (?4 = 0 or seq < ?4) and seq > ?8
  and (?6 = '' or actor = ?6 or substr(actor, 1, length(?6) + 1) = ?6 || ' ') and (?7 = '' or event = ?7)
order by seq desc
limit ?5 + 0
