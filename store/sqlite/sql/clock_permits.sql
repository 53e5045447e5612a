-- Makes the next claim derive the starts of jobs from their states, for jobs claimed before the reboot. No holder will
-- report these starts.
-- ?1 now
update sluice_permit set check_at = ?1 where check_at > ?1
