-- Lists the places of jobs among those of their limit keys, their limit keys and their costs.
-- ?1 JSON list of seqs
select seq, priority, due_at, coalesce(limit_key, ''), cost from sluice_live where seq in (select value from json_each(?1))
