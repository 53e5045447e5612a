-- Lists the limit keys and costs of jobs.
-- ?1 JSON list of seqs
select seq, coalesce(limit_key, ''), cost from sluice_live where seq in (select value from json_each(?1))
