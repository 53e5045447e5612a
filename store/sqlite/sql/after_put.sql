-- Notes what a job is to run after.
-- ?1 seq   ?2 seqs of the others as a JSON array
insert or ignore into sluice_after (after_seq, seq) select value, ?1 from json_each(?2)
