-- Lists the receivers of alerts by name, with the jobs that wait in their queues. Of the jobs of one alert, only the
-- oldest is not blocked. Gives one row without a name if there is no receiver, because it also gives the server's clock.
-- $1 integer the most jobs to count
select now(), r.name, r.queue, r.seen, coalesce(n.waiting, 0), o.created_at, coalesce(o.error, '')
from (select 1) one
left join sluice.alert_receiver r on true
left join lateral (
    select count(*) as waiting
    from (select from sluice.live l where l.queue = r.queue and l.order_key is not null limit $1::integer) w
) n on true
left join lateral (
    select j.created_at, l.error
    from sluice.live l
    join sluice.job j on j.id = l.id
    where l.queue = r.queue and l.order_key is not null and l.blocked_by is null
    order by j.created_at, l.id
    limit 1
) o on true
order by r.name collate "C"
