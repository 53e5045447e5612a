-- Nobody tells any more of what was claimed in an earlier start of the machine: the next claim looks what became of it.
-- ?1 now
update sluice_permit set check_at = ?1 where check_at > ?1
