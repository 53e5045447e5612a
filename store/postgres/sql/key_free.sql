-- Frees the keys of jobs that have ended, and lets the jobs go that waited for them and for nothing else. The statement
-- runs apart from end and complete: these may have waited for an enqueue that put a job behind an ended job, and would
-- not see the new row. The statement skips a key that an enqueue has locked, because that transaction may stay open for
-- long. The next transaction that wants the key finds that its job has ended. The same happens to a key that changed
-- after the statement began. It also skips a waiting job that such a transaction replaces, and returns the ended job, so
-- that unblock looks again.
-- $1 uuid[] ids
with named as materialized (
    select e.id, j.queue, j.key
    from unnest($1::uuid[]) as e(id)
    cross join lateral (select w.queue, w.key from sluice.job w where w.id = e.id offset 0) j
), free as materialized (
    select k.place
    from named n
    cross join lateral (
        select w.ctid as place from sluice.job_key w
        where w.queue = n.queue and w.key = n.key and w.job_id = n.id and w.until is null
        limit 1
        for update skip locked
    ) k
), given_back as (
    delete from sluice.job_key where ctid = any (array(select place from free))
), behind as materialized (
    select l.id, l.blocked_by
    from sluice.live l
    where l.blocked_by = any ($1::uuid[]) and l.order_key is null
      and (select true from sluice.job_after a where a.job_id = l.id limit 1) is null
), mine as materialized (
    select l.id
    from sluice.live l
    where l.id = any (array(select b.id from behind b)) and coalesce(l.blocked_by = any ($1::uuid[]), false)
    for update of l skip locked
), gone as (
    update sluice.live l set blocked_by = null where l.id = any (array(select m.id from mine m))
    returning l.id, l.queue
)
select g.id, g.queue, 'let go' from gone g
union all
select b.blocked_by, '', 'look again' from behind b where b.id not in (select m.id from mine m)
