-- Returns when the first waiting job of each queue may be claimed, limits aside. Null: the queue has no waiting job, or
-- is paused without an end. Of the parked jobs, which limits keep waiting, any one counts: they are due, mostly.
-- ?1 names as JSON   ?2 now
select n.value,
       case when q.paused and (q.paused_until is null or q.paused_until > ?2) then iif(first_due is null or q.paused_until is null, null, max(first_due, q.paused_until))
            else first_due end
from (
    select names.value,
           (select min(due_at) from (
               select (select l.due_at from sluice_live l
                       where l.queue = names.value and l.priority = p.value and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue = 0
                         and (l.expires_at is null or l.expires_at > max(?2, l.due_at))
                       order by l.due_at limit 1) as due_at
               from json_each('[1,2,3,4,5,6,7,8,9,10]') p
               union all
               select (select l.due_at from sluice_live l
                       where l.queue = names.value and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue = 1
                       order by l.due_at limit 1)
               union all
               select (select l.due_at from sluice_live l
                       where l.queue = names.value and l.parked and (l.expires_at is null or l.expires_at > max(?2, l.due_at))
                       order by l.limit_key, l.priority, l.due_at limit 1)
           )) as first_due
    from json_each(?1) names
) n
left join sluice_queue q on q.name = n.value
