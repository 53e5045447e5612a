-- Unparks the parked jobs that no limit keeps out any more. They keep their turns in their orders.
-- ?1 JSON list of seqs
update sluice_live set parked = 0, blocked_by = null where seq in (select value from json_each(?1)) and parked returning queue
