-- Deletes batches that were complete long ago, and whose parent is not stored. Their jobs stay. Returns the number of
-- deleted batches.
-- $1 interval age   $2 integer limit
with old as materialized (
    select b.id
    from sluice.batch b
    where b.completed_at is not null and b.completed_at <= now() - $1::interval
      and (b.parent is null or (select true from sluice.batch o where o.id = b.parent) is null)
      and coalesce((select c.total = c.completed + c.dead + c.cancelled from sluice.batch_count c where c.batch = b.id), true)
    order by b.completed_at
    limit $2::integer
    for update skip locked
), counts as (
    delete from sluice.batch_count where batch = any (array(select id from old))
), gone as (
    delete from sluice.batch where id = any (array(select id from old)) returning id
)
select count(*) from gone
