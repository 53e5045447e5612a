-- Lists a batch and all batches in it, the batch itself first.
-- ?1 id
with recursive tree(id, depth) as (
    select id, 0 from sluice_batch where id = ?1
    union all
    select i.id, t.depth + 1 from tree t cross join sluice_batch i indexed by sluice_batch_in on i.parent = t.id
)
select id from tree order by depth, id
