-- Takes what a receiver is to be told now, for a while: of each alert the oldest.
-- ?1 receiver   ?2 limit   ?3 now   ?4 until when nobody else gets it
update sluice_alert_notice
set due_at = ?4, attempts = attempts + 1
where seq in (
    select n.seq
    from sluice_alert_notice n
    where n.receiver = ?1 and n.due_at <= ?3
      and not exists (select 1 from sluice_alert_notice e where e.receiver = n.receiver and e.rule = n.rule and e.queue = n.queue and e.seq < n.seq)
    order by n.seq
    limit ?2 + 0)
returning seq, receiver, message, created_at, attempts, error
