-- Takes away what a claim marked of jobs whose own row somebody deleted: nobody could run them, and they would be in
-- flight until they are poison.
-- ?1 seqs as a JSON array   ?2 token
delete from sluice_live
where seq in (select value from json_each(?1)) and state = 'claimed' and token = ?2
  and not exists (select 1 from sluice_job j where j.seq = sluice_live.seq)
returning seq, queue, generation
