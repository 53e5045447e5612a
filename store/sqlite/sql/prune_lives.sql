-- Deletes every finished life of jobs.
-- ?1 seqs as a JSON array
delete from sluice_done where seq in (select value from json_each(?1))
