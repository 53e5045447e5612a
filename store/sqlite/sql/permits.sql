-- What claims of a queue with a rate took and may not have begun yet.
-- ?1 queue
select claimed_at, token, jobs, begun, gone, check_at from sluice_permit where queue = ?1 order by claimed_at
