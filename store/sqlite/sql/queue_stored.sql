-- Returns whether a queue has settings.
-- ?1 name
select 1 from sluice_queue where name = ?1
