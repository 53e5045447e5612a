-- Closes a batch, with all in it or alone, and lets upkeep look at those that were open. Returns how many there are.
-- $1 uuid id   $2 boolean with all in it
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
