-- What a run would make of the jobs that are due now, without doing it. $1 text[] queues; $2 int how many jobs.
select j.queue, r.verdict, count(*)::integer
from (select queue, id from sluice.jobs where state = 'queued' and queue = any($1::text[]) and due_at <= now()
      order by priority, due_at, id limit $2::integer) j
join ingredients.mention m on m.job = j.id
cross join lateral ingredients.resolve(m.raw) r
group by 1, 2 order by 1, 2
