-- Finds the job at which a page of the jobs of a batch, and of the batches in it, ends.
-- $1 uuid batch   $2 uuid below (null: no bound)   $3 integer how many jobs a page looks at   $4 uuid from (null: no bound)
with recursive tree(id) as (
    select $1::uuid
    union all
    select i.id from tree t cross join lateral (select w.id from sluice.batch w where w.parent = t.id offset 0) i
)
select m.id
from tree t
cross join lateral (
    select w.id from sluice.job w
    where w.batch_id = t.id and w.id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and w.id >= coalesce($4::uuid, '00000000-0000-0000-0000-000000000000')
    order by w.id desc
    limit $3::integer
) m
order by m.id desc
offset $3::integer - 1
limit 1
