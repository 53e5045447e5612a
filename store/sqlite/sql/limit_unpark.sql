-- Admits the first parked jobs of a limit key, along the index sluice_live_parked. An expired job gets no room: it
-- stays parked until upkeep cancels it.
-- ?1 queue   ?2 key   ?3 limit   ?4 now
update sluice_live
set parked = 0, blocked_by = null
where seq in (select seq from sluice_live where queue = ?1 and limit_key = ?2 and parked and (expires_at is null or expires_at > max(?4, due_at))
              order by priority, due_at, seq limit ?3 + 0)
