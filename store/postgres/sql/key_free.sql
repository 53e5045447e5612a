-- Gives back the keys of jobs that have ended, or hands them to the jobs that those waited for, and lets the jobs behind
-- them go. A statement of its own after end and complete: these may have waited for an enqueue to put a job behind one,
-- and would not see it. A key to be given back that an enqueue has locked is left as it is, because that transaction
-- may stay open for long; whoever wants it next sees that its job has ended.
-- $1 uuid[] ids   $2 uuid[] the job that each waited for, or null
with ended as (
    select * from unnest($1::uuid[], $2::uuid[]) as e(id, blocked_by)
), free as materialized (
    select k.queue, k.key
    from ended e
    join sluice.job j on j.id = e.id
    join sluice.job_key k on k.queue = j.queue and k.key = j.key
    where e.blocked_by is null and j.id = any ($1::uuid[]) and k.job_id = e.id and k.until is null
    for update of k skip locked
), given_back as (
    delete from sluice.job_key k using free f where k.queue = f.queue and k.key = f.key
), handed_on as (
    update sluice.job_key k
    set job_id = e.blocked_by
    from ended e, sluice.job j
    where e.blocked_by is not null and j.id = e.id and j.id = any ($1::uuid[])
      and k.queue = j.queue and k.key = j.key and k.job_id = e.id and k.until is null
)
update sluice.live l
set blocked_by = null
where l.blocked_by = any ($1::uuid[])
returning l.id, l.queue, 'let go'
