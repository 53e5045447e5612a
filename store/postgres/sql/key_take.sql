-- Takes keys that nobody holds or whose window has passed, and returns them. If the jobs are new, the statement skips
-- jobs that are stored already: a repeated job is a duplicate of itself. Windows follow the clock, and not the beginning of
-- the transaction, which may be long ago.
-- $1 text[] queues and $2 text[] keys, sorted by both and unique   $3 uuid[] job ids
-- $4 interval[] windows (null: while the job is unfinished, or forever)   $5 boolean[] forever
-- $6 boolean whether the jobs are new
insert into sluice.job_key as k (queue, key, job_id, until)
select g.queue, g.key, g.id, case when g.forever then 'infinity' else clock_timestamp() + g.span end
from unnest($1::text[], $2::text[], $3::uuid[], $4::interval[], $5::boolean[]) as g(queue, key, id, span, forever)
where not ($6::boolean and exists (select from sluice.job j where j.id = g.id))
on conflict (queue, key) do update set job_id = excluded.job_id, until = excluded.until
where k.until <= clock_timestamp()
returning k.queue, k.key
