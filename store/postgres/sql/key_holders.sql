-- Reads the holders of keys: the job, whether it still lives, the twin that it waits for, and its tenant. Of a deleted
-- job the tenant is null. Stored says whether the job that wants the key is stored already. If not, key_take.sql has
-- locked the key before. If the holder was cancelled and has left the key behind, a living twin counts as the holder; see
-- key_hand_on.sql.
-- $1 text[] queues   $2 text[] keys   $3 uuid[] job ids
select g.queue, g.key, h.id, coalesce(k.until is null, false) as unfinished_only, l.state,
       (select b.id from sluice.job b where b.id = l.blocked_by and b.queue = k.queue and b.key = k.key), j.id is not null as stored,
       coalesce(isfinite(k.until), false) as for_window,
       coalesce(l.tenant, (select o.tenant from sluice.job o where o.id = h.id)) as tenant
from unnest($1::text[], $2::text[], $3::uuid[]) as g(queue, key, id)
left join lateral (select * from sluice.job_key w where w.queue = g.queue and w.key = g.key offset 0) k on true
left join lateral (
    select coalesce(case when k.until is null and (select true from sluice.done d where d.id = k.job_id and d.outcome = 'cancelled' limit 1)
                              and (select true from sluice.live w where w.id = k.job_id) is null then (
        select b.id
        from sluice.job b
        cross join lateral (select w.keyed from sluice.live w where w.id = b.id offset 0) w
        where b.key = g.key and b.queue = g.queue and w.keyed
        order by b.key desc, b.id desc
        limit 1) end, k.job_id) as id
    offset 0) h on true
left join lateral (
    select w.state, w.tenant, case when w.blocked_by = w.id then (select h.behind from sluice.hold h where h.job_id = w.id) else w.blocked_by end as blocked_by
    from sluice.live w where w.id = h.id offset 0) l on true
left join lateral (select w.id from sluice.job w where w.id = g.id offset 0) j on true
