-- Lists the permits of a queue with a rate: how many jobs each claim took, and how many have begun or never will.
-- ?1 queue
select claimed_at, token, jobs, begun, gone, check_at from sluice_permit where queue = ?1 order by claimed_at
