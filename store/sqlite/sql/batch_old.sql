-- Lists batches that were complete long ago, and whose parent is not stored.
-- ?1 complete at or before   ?2 limit
select b.id
from sluice_batch b
join sluice_batch_count c on c.batch = b.id
where b.completed_at <= ?1 and (b.parent is null or not exists (select 1 from sluice_batch o where o.id = b.parent))
  and c.total = c.completed + c.dead + c.cancelled
order by b.completed_at
limit ?2 + 0
