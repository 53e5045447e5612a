-- Locks a batch and all batches in it, so that batches that other transactions open in them take on the pause. Returns
-- their number. The statement does not wait while it holds locks: such a transaction may wait for one of them.
-- $1 uuid id
with recursive tree(id) as (
    select w.id from sluice.batch w where w.id = $1::uuid
    union all
    select i.id from tree t cross join lateral (select w.id from sluice.batch w where w.parent = t.id offset 0) i
), locked as (
    select b.id from sluice.batch b where b.id = any (array(select id from tree)) for update nowait
)
select count(*) from locked
