-- Lists the batches that upkeep must look at, with the facts that decide: whether a job has died, how many batches
-- directly in each are not complete, and how many have not succeeded.
-- ?1 limit
select b.id, b.name, b.parent, b.callbacks, b.created_at, b.created_by, b.closed_at, b.completed_at, b.succeeded_at, b.died_at, b.paused,
       c.total, c.completed, c.dead, c.cancelled,
       (select count(*) from sluice_batch i indexed by sluice_batch_in where i.parent = b.id), (select count(*) from sluice_batch i indexed by sluice_batch_in where i.parent = b.id and i.completed_at is not null),
       c.died, (select count(*) from sluice_batch i indexed by sluice_batch_in where i.parent = b.id and i.completed_at is null),
       (select count(*) from sluice_batch i indexed by sluice_batch_in where i.parent = b.id and i.succeeded_at is null)
from sluice_batch_count c indexed by sluice_batch_changed
join sluice_batch b on b.id = c.batch
where c.changed = 1
order by c.batch
limit ?1 + 0
