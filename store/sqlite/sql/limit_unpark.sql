-- Lets in the first parked jobs of a limit key. The walk goes along the index sluice_live_parked.
-- ?1 queue   ?2 key   ?3 limit
update sluice_live
set parked = 0, blocked_by = null
where seq in (select seq from sluice_live where queue = ?1 and limit_key = ?2 and parked order by priority, due_at, seq limit ?3 + 0)
