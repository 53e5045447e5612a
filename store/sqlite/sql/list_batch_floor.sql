-- Finds the job at which a page of the jobs of one batch ends.
-- ?1 batch   ?2 below (seq)   ?3 how many jobs a page looks at   ?4 from (seq)
select seq, id from sluice_job indexed by sluice_job_by_batch where batch_id = ?1 and seq < ?2 and seq >= ?4 order by seq desc limit 1 offset ?3 - 1
