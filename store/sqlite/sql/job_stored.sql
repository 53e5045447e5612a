-- Whether a job is stored already.
-- ?1 id
select 1 from sluice_job where id = ?1
