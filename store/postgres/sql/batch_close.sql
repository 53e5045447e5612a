-- Closes a batch, alone or with all batches in it, and makes upkeep look at the batches that were open. Returns the
-- number of batches.
-- $1 uuid id   $2 boolean whether to close all batches in it too
with recursive tree(id) as (
    select w.id from sluice.batch w where w.id = $1::uuid
    union all
    select i.id from tree t cross join lateral (select w.id from sluice.batch w where w.parent = t.id offset 0) i where $2::boolean
), closed as (
    update sluice.batch b
    set closed_at = now()
    where b.id = any (array(select id from tree)) and b.closed_at is null
    returning b.id
), changed as (
    insert into sluice.batch_change (batch, kind, jobs) select id, 'total', 0 from closed
)
select count(*) from tree
