-- Lists a page of batches with their counts, the newest first.
-- ?1 parent (null: all)   ?2 only those that are not complete   ?3 before (null: from the newest)   ?4 limit
select b.id, b.name, b.parent, b.callbacks, b.created_at, b.created_by, b.closed_at, b.completed_at, b.succeeded_at, b.died_at, b.paused,
       c.total, c.completed, c.dead, c.cancelled,
       (select count(*) from sluice_batch i indexed by sluice_batch_in where i.parent = b.id), (select count(*) from sluice_batch i indexed by sluice_batch_in where i.parent = b.id and i.completed_at is not null)
from sluice_batch b
join sluice_batch_count c on c.batch = b.id
where (?1 is null or b.parent = ?1) and (not ?2 or b.completed_at is null) and (?3 is null or b.id < ?3)
order by b.id desc
limit ?4 + 0
