-- Lists whom processes with upkeep tell of alerts, by name, and what they were not told yet.
select r.name, r.seen,
       (select count(*) from sluice_alert_notice n where n.receiver = r.name),
       (select min(created_at) from sluice_alert_notice n where n.receiver = r.name),
       coalesce((select error from sluice_alert_notice n where n.receiver = r.name order by seq limit 1), '')
from sluice_alert_receiver r
order by r.name
