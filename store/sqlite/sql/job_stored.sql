-- Returns whether a job is stored.
-- ?1 id
select 1 from sluice_job where id = ?1
