-- Gives back the keys of jobs that have ended, and lets the jobs behind them go that wait for nothing else. A statement of
-- its own after end and complete: these may have waited for an enqueue to put a job behind one, and would not see it. A
-- key that an enqueue has locked is left as it is, because that transaction may stay open for long; whoever wants it next
-- sees that its job has ended.
-- $1 uuid[] ids
with named as materialized (
    select e.id, j.queue, j.key
    from unnest($1::uuid[]) as e(id)
    cross join lateral (select w.queue, w.key from sluice.job w where w.id = e.id offset 0) j
), free as materialized (
    select k.queue, k.key
    from named n
    join sluice.job_key k on k.queue = n.queue and k.key = n.key
    where k.job_id = n.id and k.until is null
      and k.queue = any (array(select queue from named)) and k.key = any (array(select key from named))
    for update of k skip locked
), given_back as (
    delete from sluice.job_key k using free f
    where k.queue = f.queue and k.key = f.key
      and k.queue = any (array(select queue from free)) and k.key = any (array(select key from free))
)
update sluice.live l
set blocked_by = null
where l.blocked_by = any ($1::uuid[]) and l.order_key is null
  and (select true from sluice.job_after a where a.job_id = l.id limit 1) is null
returning l.id, l.queue, 'let go'
