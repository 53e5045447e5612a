-- Stores the audited settings of a queue, and its scheduled changes. The version was read in the same transaction.
-- ?1 name   ?2 version   ?3 now   ?4 actor   ?5 reason   ?6 the settings as JSON   ?7 the scheduled changes as JSON, or null
update sluice_queue
set version = ?2, changed_at = ?3, changed_by = ?4, reason = ?5, recorded = ?6, scheduled = ?7
where name = ?1
