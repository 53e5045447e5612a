-- Reads a batch with its counts.
-- ?1 id
select b.id, b.name, b.parent, b.callbacks, b.created_at, b.created_by, b.closed_at, b.completed_at, b.succeeded_at, b.died_at, b.paused,
       c.total, c.completed, c.dead, c.cancelled,
       (select count(*) from sluice_batch i indexed by sluice_batch_in where i.parent = b.id), (select count(*) from sluice_batch i indexed by sluice_batch_in where i.parent = b.id and i.completed_at is not null)
from sluice_batch b
join sluice_batch_count c on c.batch = b.id
where b.id = ?1
