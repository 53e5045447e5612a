-- Deletes jobs in flight whose row in sluice_job somebody deleted. No worker could run or follow such jobs, and they
-- would use up limits. The caller counts them as cancelled in their batches.
-- ?1 seqs as a JSON array   ?2 the token that the jobs must have (null: any)
delete from sluice_live
where seq in (select value from json_each(?1)) and state in ('claimed', 'dispatched') and (?2 is null or token = ?2)
  and not exists (select 1 from sluice_job j where j.seq = sluice_live.seq)
returning seq, queue, generation, run_of, batch_id
