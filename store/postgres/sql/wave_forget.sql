-- Forgets the counts of queues that are there no more.
-- $1 text[] the queues that are there
with gone as (
    delete from sluice.wave_count where queue <> all ($1::text[]) returning queue
)
delete from sluice.wave where queue = any (array(select queue from gone))
