-- Notes what a job is to run after.
-- ?1 seq   ?2 [seq, failure rule] of each of the others as a JSON array
insert or ignore into sluice_after (after_seq, seq, rule)
select json_extract(value, '$[0]'), ?1, json_extract(value, '$[1]') from json_each(?2)
