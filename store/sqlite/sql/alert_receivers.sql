-- Lists the receivers of alerts by name, with the jobs that wait in their queues. Of the jobs of one alert, only the
-- oldest is not blocked.
-- ?1 the most jobs to count
select r.name, r.queue, r.seen,
       (select count(*) from (select 1 from sluice_live w where w.queue = r.queue and w.order_key is not null limit ?1 + 0)),
       j.created_at, coalesce(l.error, '')
from sluice_alert_receiver r
left join sluice_live l on l.seq = (
    select min(h.seq) from sluice_live h where h.queue = r.queue and h.order_key is not null and h.blocked_by is null)
left join sluice_job j on j.seq = l.seq
order by r.name
