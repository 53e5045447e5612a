-- Lets a released job wait for what it waited for before, if that still lives, and otherwise for itself until it is looked at.
-- ?1 seq   ?2 seq of the other job, or null
update sluice_live set blocked_by = coalesce((select b.seq from sluice_live b where b.seq = ?2), seq) where seq = ?1
