-- Takes away what a claim locked of jobs whose own row somebody deleted: nobody could run them, and they would be in
-- flight until they are poison. Tells the audit. Returns how many there were.
-- $1 uuid[] ids   $2 uuid token   $3 text holder
with gone as (
    delete from sluice.live l
    where l.id = any ($1::uuid[]) and l.state = 'claimed' and l.token = $2::uuid
      and not exists (select from sluice.job j where j.id = l.id)
    returning l.id, l.queue, l.generation
), told as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, reason)
    select $3::text, 'job', queue, 'job missing', id, generation, 'somebody deleted its row in sluice.job; there is nothing to run'
    from gone
)
select count(*) from gone
