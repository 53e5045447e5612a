-- Gives back the key of a job that has ended, or hands it to the job it waited for, and lets the job behind it go.
-- A key that an enqueue has locked is left as it is, as in end.
-- $1 uuid id   $2 uuid the job it waited for, or null
with place as materialized (
    select k.queue, k.key
    from sluice.job j join sluice.job_key k on k.queue = j.queue and k.key = j.key
    where j.id = $1::uuid and k.job_id = $1::uuid and k.until is null
    for update of k skip locked
), given_back as (
    delete from sluice.job_key k using place p where k.queue = p.queue and k.key = p.key and $2::uuid is null
), handed_on as (
    update sluice.job_key k set job_id = $2::uuid from place p where k.queue = p.queue and k.key = p.key and $2::uuid is not null
)
update sluice.live set blocked_by = null where blocked_by = $1::uuid
