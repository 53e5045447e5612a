-- Lists whom processes with upkeep tell of alerts, by name, and what they were not told yet. Gives one row without a name
-- where there are none, because it also tells what the server's clock shows.
select now(), r.name, r.seen, coalesce(n.waiting, 0), n.oldest, coalesce(n.error, '')
from (select 1) one
left join sluice.alert_receiver r on true
left join lateral (
    select count(*) as waiting, min(w.created_at) as oldest, (array_agg(w.error order by w.seq))[1] as error
    from sluice.alert_notice w
    where w.receiver = r.name
) n on true
order by r.name collate "C"
