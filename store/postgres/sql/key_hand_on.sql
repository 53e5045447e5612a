-- Hands the keys of ended jobs on to the twins that they waited for. It runs before key_free.sql, in the same
-- transaction. It skips a key that an enqueue has locked: every transaction locks a key before the jobs that hold it, and
-- these jobs are locked already. The next transaction that wants the key finds the twin; see key_holders.sql.
-- $1 uuid[] ids   $2 uuid[] the job that each ended job waited for, or null
with heirs as materialized (
    select e.id as before, b.id, b.queue, b.key
    from unnest($1::uuid[], $2::uuid[]) as e(id, blocked_by)
    cross join lateral (select w.queue, w.key from sluice.job w where w.id = e.id offset 0) j
    cross join lateral (select w.id, w.queue, w.key from sluice.job w where w.id = e.blocked_by offset 0) b
    where b.queue = j.queue and b.key = j.key
), free as materialized (
    select h.id, k.place
    from heirs h
    cross join lateral (
        select w.ctid as place from sluice.job_key w
        where w.queue = h.queue and w.key = h.key and w.job_id = h.before and w.until is null
        limit 1
        for update skip locked
    ) k
)
update sluice.job_key k
set job_id = f.id
from free f
where k.ctid = f.place and k.ctid = any (array(select place from free))
