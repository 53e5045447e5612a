-- Adds an entry to the audit.
-- ?1 now   ?2 actor   ?3 object   ?4 name   ?5 event   ?6 job id or null   ?7 generation   ?8 from   ?9 to   ?10 reason
-- ?11 before or null   ?12 after or null   ?13 act id or null
insert into sluice_audit (at, actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
