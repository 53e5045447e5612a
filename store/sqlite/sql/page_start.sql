-- Finds where a page begins: the seq of the last job of the page before, or of the newest older job.
-- ?1 id
select coalesce(max(seq), 0) from (select seq from sluice_job where id <= ?1 order by id desc limit 1)
