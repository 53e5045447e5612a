-- Hands the keys of ended jobs on to the twins that they waited for. It runs before key_free.sql, in the same
-- transaction.
-- $1 uuid[] ids   $2 uuid[] the job that each ended job waited for, or null
with heirs as materialized (
    select e.id as before, b.id, b.queue, b.key
    from unnest($1::uuid[], $2::uuid[]) as e(id, blocked_by)
    cross join lateral (select w.queue, w.key from sluice.job w where w.id = e.id offset 0) j
    cross join lateral (select w.id, w.queue, w.key from sluice.job w where w.id = e.blocked_by offset 0) b
    where b.queue = j.queue and b.key = j.key
)
update sluice.job_key k
set job_id = h.id
from heirs h
where k.queue = h.queue and k.key = h.key and k.job_id = h.before and k.until is null
  and k.queue = any (array(select queue from heirs)) and k.key = any (array(select key from heirs))
