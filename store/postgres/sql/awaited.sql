-- Records that other jobs wait for jobs of some queues, and of the queues of some jobs.
-- $1 text[] queues   $2 uuid[] ids
insert into sluice.awaited (queue)
select w.queue
from (select unnest($1::text[]) as queue union select j.queue from sluice.job j where j.id = any ($2::uuid[])) w
where not exists (select from sluice.awaited a where a.queue = w.queue)
order by w.queue
on conflict do nothing
