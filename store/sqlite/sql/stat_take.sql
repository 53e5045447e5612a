-- Deletes the counts of a holder, to add them up. No row: another process has taken them.
-- ?1 bucket   ?2 queue   ?3 holder
delete from sluice_stat_part where at = ?1 and queue = ?2 and holder = ?3
returning 1
