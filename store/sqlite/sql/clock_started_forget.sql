-- Deletes the starts that clock_started.sql has counted again.
-- ?1 now
delete from sluice_started where at > ?1
