-- Lists notes on groups of dead letters, by fingerprint.
-- ?1 fingerprints as a JSON array, or null: all
select fingerprint, note, owner, resolved_at, version, changed_at, changed_by, reason
from sluice_dead_note
where ?1 is null or fingerprint in (select value from json_each(?1))
order by fingerprint
