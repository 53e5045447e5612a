-- Takes the marks from parked jobs that no limit keeps out any more, before they are looked at.
-- ?1 JSON list of seqs
update sluice_live set parked = 0 where seq in (select value from json_each(?1)) and parked
