-- Stores the reason why a batch and all batches in it are paused, and audits each change. Returns the number of batches.
-- $1 uuid id   $2 text reason (empty: not paused)   $3 text event   $4 text by whom   $5 text reason of the act   $6 uuid act
with recursive tree(id) as (
    select w.id from sluice.batch w where w.id = $1::uuid
    union all
    select i.id from tree t cross join lateral (select w.id from sluice.batch w where w.parent = t.id offset 0) i
), set_to as (
    update sluice.batch b
    set paused = $2::text
    where b.id = any (array(select id from tree)) and b.paused <> $2::text
    returning b.id
), audited as (
    insert into sluice.audit (object, name, event, actor, reason, act_id)
    select 'batch', id::text, $3::text, $4::text, $5::text, $6::uuid from set_to
)
select count(*) from tree
