-- Lists notes on groups of dead letters, by fingerprint.
-- $1 text[] fingerprints, null: all
select fingerprint, note, owner, resolved_at, version, changed_at, changed_by, reason
from sluice.dead_note
where $1::text[] is null or fingerprint = any ($1::text[])
order by fingerprint
