-- No holder reports the starts of jobs that were claimed before the machine started: the next claim derives them from the states of the jobs.
-- ?1 now
update sluice_permit set check_at = ?1 where check_at > ?1
