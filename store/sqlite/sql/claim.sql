-- Claims the jobs that claim_find found, in the same transaction.
-- ?1 token   ?2 holder   ?3 now   ?4 lease_until, by the steady clock   ?5 seqs as a JSON array
update sluice_live
set state = 'claimed', token = ?1, holder = ?2, claimed_at = ?3, lease_until = ?4
where seq in (select value from json_each(?5)) and state = 'queued'
