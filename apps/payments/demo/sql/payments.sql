-- What became of the payments.
with facts as (
    select p.status, p.due_at,
           (select count(*) from payment_run r where r.payment_id = p.id) as runs,
           (select min(executed_at) from payment_run r where r.payment_id = p.id) as executed_at,
           (select count(*) from payment_entry e where e.payment_id = p.id) as entries,
           (select coalesce(sum(e.cents), 0) from payment_entry e where e.payment_id = p.id) as balance,
           (select coalesce(max(e.cents), 0) from payment_entry e where e.payment_id = p.id) - p.cents as misposted,
           (select count(*) from payment_settlement s where s.payment_id = p.id) as settlements,
           (select count(*) from payment_notice n where n.payment_id = p.id) as notices
    from payment p
)
select
    count(*),
    count(*) filter (where runs = 1),
    count(*) filter (where runs = 0),
    count(*) filter (where runs > 1),
    count(*) filter (where executed_at < due_at),
    count(*) filter (where status <> 'PROCESSING'),
    count(*) filter (where entries <> 2 or balance <> 0 or misposted <> 0 or settlements <> 1 or notices <> 3),
    coalesce(max(executed_at) - min(due_at), 0)
from facts
