-- Records the runs of jobs that orphans_drop.sql deletes. They count as in flight until their engine reports their end.
-- ?1 seqs as a JSON array   ?2 the token that the jobs must have (null: any)   ?3 now
insert into sluice_orphan_run (job_id, queue, tenant, generation, engine, ref, cancelled_at, claimed_at, started, limit_key, cost)
select run_of, queue, tenant, generation, engine, ref, ?3, claimed_at, state = 'dispatched', limit_key, cost
from sluice_live
where seq in (select value from json_each(?1)) and state in ('claimed', 'dispatched') and (?2 is null or token = ?2)
  and engine is not null and ref is not null
  and not exists (select 1 from sluice_job j where j.seq = sluice_live.seq)
on conflict (job_id, ref) do nothing
