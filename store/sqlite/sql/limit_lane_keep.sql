-- Stores when claims look again at the parked jobs of a limit key: at the latest when the first of them expires, which then
-- keeps no cheaper one behind it.
-- ?1 queue   ?2 key   ?3 wake_at   ?4 now
insert into sluice_limit_lane (queue, key, wake_at)
values (?1, ?2, min(?3, coalesce((
    select l.expires_at
    from sluice_live l
    where l.queue = ?1 and l.limit_key = ?2 and l.parked and (l.expires_at is null or l.expires_at > max(?4, l.due_at))
    order by l.priority, l.due_at, l.seq
    limit 1
), ?3)))
on conflict (key, queue) do update set wake_at = excluded.wake_at
