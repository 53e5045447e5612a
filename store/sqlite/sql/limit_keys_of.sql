-- The limit keys of jobs that have one.
-- ?1 JSON list of seqs
select seq, limit_key from sluice_live where seq in (select value from json_each(?1)) and limit_key is not null
