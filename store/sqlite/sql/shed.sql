-- Jobs that a full queue gives up: the lowest priority first, of these the last due. Jobs of an order, jobs that wait for
-- others, and jobs that others run after stay.
-- ?1 queue   ?2 only of a higher priority number   ?3 how many
select (select j.id from sluice_job j where j.seq = l.seq) from sluice_live l
where queue = ?1 and priority > ?2 and state = 'queued' and blocked_by is null and in_tenant_queue = 0
    and order_key is null
    and not exists (select 1 from sluice_after a where a.after_id = (select j.id from sluice_job j where j.seq = l.seq))
order by priority desc, due_at desc
limit ?3 + 0
