-- Takes what a receiver is to be told now, for a while: of each alert the oldest.
-- $1 text receiver   $2 integer limit   $3 interval for how long nobody else gets it
update sluice.alert_notice t
set due_at = now() + $3::interval, attempts = t.attempts + 1
where t.seq = any(array(
    select n.seq
    from sluice.alert_notice n
    where n.receiver = $1::text and n.due_at <= now()
      and not exists (select from sluice.alert_notice e where e.receiver = n.receiver and e.rule = n.rule and e.queue = n.queue and e.seq < n.seq)
    order by n.seq
    limit $2::integer
    for update skip locked))
returning t.seq, t.receiver, t.message, t.created_at, t.attempts, t.error
