-- Deletes jobs whose finished lives are deleted, unless they live again.
-- ?1 seqs as a JSON array
delete from sluice_job
where seq in (select value from json_each(?1))
  and not exists (select 1 from sluice_live l where l.seq = sluice_job.seq)
