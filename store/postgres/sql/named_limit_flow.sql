-- Makes the rows in flow of limits, once.
-- $1 text[] names
insert into sluice.flow (queue)
select '@' || n.name
from sluice.named_limit n
where n.name = any ($1::text[]) and not exists (select from sluice.flow f where f.queue = '@' || n.name)
order by n.name collate "C"
on conflict (queue) do nothing
returning queue
