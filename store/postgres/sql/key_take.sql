-- Takes keys that nobody holds, and those whose window has passed. For new jobs it leaves out those that are stored
-- already: such a job is sent again, and is a duplicate of itself. Returns the keys taken.
-- $1 text[] queues and $2 text[] keys, sorted by both and unique   $3 uuid[] job ids
-- $4 interval[] windows (null: while the job is unfinished, or for ever)   $5 boolean[] for ever
-- $6 boolean the jobs are new
insert into sluice.job_key as k (queue, key, job_id, until)
select g.queue, g.key, g.id, case when g.forever then 'infinity' else now() + g.span end
from unnest($1::text[], $2::text[], $3::uuid[], $4::interval[], $5::boolean[]) as g(queue, key, id, span, forever)
where not ($6::boolean and exists (select from sluice.job j where j.id = g.id))
on conflict (queue, key) do update set job_id = excluded.job_id, until = excluded.until
where k.until <= now()
returning k.queue, k.key
