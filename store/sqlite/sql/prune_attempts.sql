-- Deletes every failed attempt of jobs.
-- ?1 seqs as a JSON array
delete from sluice_attempt where seq in (select value from json_each(?1))
