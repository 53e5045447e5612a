-- Deletes a schedule.
-- ?1 name
delete from sluice_schedule where name = ?1
