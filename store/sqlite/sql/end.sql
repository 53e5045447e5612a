-- Takes jobs that have ended out of the live ones.
-- ?1 seqs as a JSON array
delete from sluice_live where seq in (select value from json_each(?1))
