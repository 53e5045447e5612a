-- Stores when claims look again at the parked jobs of a limit key. If costs count, cheaper jobs wait behind the first one, but
-- not once it has expired. While it is not due, claims that take fewer jobs ahead may take them.
-- ?1 queue   ?2 key   ?3 wake_at   ?4 now   ?5 whether costs count
insert into sluice_limit_lane (queue, key, wake_at)
values (?1, ?2, min(?3, coalesce((
    select min(coalesce(l.expires_at, ?3), iif(l.due_at > ?4, ?4 + 1000000, ?3))
    from sluice_live l
    where l.queue = ?1 and l.limit_key = ?2 and l.parked and (l.expires_at is null or l.expires_at > max(?4, l.due_at)) and ?5
    order by l.priority, l.due_at, l.seq
    limit 1
), ?3)))
on conflict (key, queue) do update set wake_at = excluded.wake_at
