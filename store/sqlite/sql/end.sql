-- Deletes the live rows of jobs that have ended.
-- ?1 seqs as a JSON array
delete from sluice_live where seq in (select value from json_each(?1))
