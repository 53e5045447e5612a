-- Counts the jobs of a queue by state. Every count stops at the limit.
-- ?1 queue   ?2 now   ?3 limit
with priority (p) as (values (1), (2), (3), (4), (5), (6), (7), (8), (9), (10))
select
    min(?3, (select sum((select count(*) from (select 1 from sluice_live where queue = ?1 and priority = p and state = 'queued'
            and blocked_by is null and in_tenant_queue = 0 and due_at <= ?2 limit ?3 + 0))) from priority)
        + (select count(*) from (select 1 from sluice_live where queue = ?1 and state = 'queued' and blocked_by is null and in_tenant_queue = 1
            and due_at <= ?2 limit ?3 + 0))),
    min(?3, (select sum((select count(*) from (select 1 from sluice_live where queue = ?1 and priority = p and state = 'queued'
            and blocked_by is null and in_tenant_queue = 0 and due_at > ?2 limit ?3 + 0))) from priority)
        + (select count(*) from (select 1 from sluice_live where queue = ?1 and state = 'queued' and blocked_by is null and in_tenant_queue = 1
            and due_at > ?2 limit ?3 + 0))),
    (select count(*) from (select 1 from sluice_live where blocked_by is not null and queue = ?1 limit ?3 + 0)),
    (select count(*) from (select 1 from sluice_live where state = 'claimed' and queue = ?1 limit ?3 + 0)),
    (select count(*) from (select 1 from sluice_live where queue = ?1 and state in ('dispatched', 'uncertain') and state = 'dispatched' limit ?3 + 0)),
    (select count(*) from (select 1 from sluice_live where queue = ?1 and state in ('dispatched', 'uncertain') and state = 'uncertain' limit ?3 + 0)),
    (select count(*) from (select 1 from sluice_orphan_run where queue = ?1 limit ?3 + 0)),
    (select count(*) from (select 1 from sluice_done where queue = ?1 and outcome = 'dead' and requeued_at is null limit ?3 + 0)),
    (select min(due) from (
        select (select min(due_at) from sluice_live where queue = ?1 and priority = p and state = 'queued'
            and blocked_by is null and in_tenant_queue = 0 and due_at <= ?2) as due from priority
        union all
        select min(due_at) from sluice_live where queue = ?1 and state = 'queued' and blocked_by is null and in_tenant_queue = 1 and due_at <= ?2))
