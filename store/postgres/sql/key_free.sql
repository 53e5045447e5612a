-- Frees the keys of jobs that have ended, and lets the jobs go that waited for them and for nothing else. The statement
-- runs apart from end and complete: these may have waited for an enqueue that put a job behind an ended job, and would
-- not see the new row. The statement skips a key that an enqueue has locked, because that transaction may stay open for
-- long. The next transaction that wants the key finds that its job has ended. The same happens to a key that changed
-- after the statement began.
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
)
update sluice.live l
set blocked_by = null
where l.blocked_by = any ($1::uuid[]) and l.order_key is null
  and (select true from sluice.job_after a where a.job_id = l.id limit 1) is null
returning l.id, l.queue, 'let go'
