-- Deletes the counts of queues that no longer exist.
-- $1 text[] the queues that exist
with gone as (
    delete from sluice.wave_count where queue <> all ($1::text[]) returning queue
)
delete from sluice.wave where queue = any (array(select queue from gone))
