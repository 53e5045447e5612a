-- Takes what a holder counted, to add it up. No row: somebody else has.
-- ?1 slot   ?2 queue   ?3 holder
delete from sluice_stat_part where at = ?1 and queue = ?2 and holder = ?3
returning 1
