-- Lists a page of the audit, the newest first.
-- ?1 object ('': all)   ?2 name ('': all)   ?3 job id (x'': all)   ?4 before (0: from the newest)   ?5 limit
-- ?6 actor, or the first words of it ('': all)   ?7 event ('': all)   ?8 after
select seq, at, actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id
from sluice_audit
where (?1 = '' or object = ?1) and (?2 = '' or name = ?2) and (?4 = 0 or seq < ?4) and seq > ?8
  and (length(?3) = 0 or job_id = ?3)
  and (?6 = '' or actor = ?6 or substr(actor, 1, length(?6) + 1) = ?6 || ' ') and (?7 = '' or event = ?7)
order by seq desc
limit ?5 + 0
