-- Takes away jobs in flight whose own row somebody deleted: nobody could run or follow them, and they would hold their
-- places in limits. Their batches count them as cancelled.
-- ?1 seqs as a JSON array   ?2 the token that they must have (null: any)
delete from sluice_live
where seq in (select value from json_each(?1)) and state in ('claimed', 'dispatched') and (?2 is null or token = ?2)
  and not exists (select 1 from sluice_job j where j.seq = sluice_live.seq)
returning seq, queue, generation, run_of, batch_id
