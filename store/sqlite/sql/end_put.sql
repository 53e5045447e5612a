-- Copies the live rows of jobs that end into the history. For jobs with a result, an error or other counts, use
-- end_put_one.sql.
-- ?1 outcome   ?2 now   ?3 seqs as a JSON array
insert into sluice_done (seq, generation, queue, tenant, outcome, due_at, claimed_at, dispatched_at, finished_at, attempts, releases,
                         recoveries, token, holder, ref, error)
select seq, generation, queue, tenant, ?1, due_at, claimed_at, dispatched_at, ?2, attempts, releases, recoveries, token, holder, ref, error
from sluice_live
where seq in (select value from json_each(?3))
