-- Records the jobs that a job is to run after.
-- ?1 seq   ?2 [id, failure rule] of each job to run after, as a JSON array
insert or ignore into sluice_after (after_id, seq, rule)
select unhex(json_extract(value, '$[0]'), '-'), ?1, json_extract(value, '$[1]') from json_each(?2)
