-- What became of the payments of a queue. Jobs and ledger entries are laid side by side by payment, so that
-- nothing has to be joined.
-- ?1 queue
with side_by_side as (
    select key as payment_id, state, error, cast(json_extract(cast(payload as text), '$.cents') as integer) as cents, releases, recoveries,
           attempts, null as entry
    from sluice_jobs
    where queue = ?1
    union all
    select payment_id, null, null, null, 0, 0, 0, cents
    from demo_ledger
    where queue = ?1
), payment as (
    select payment_id, max(state) as state, max(error) as error, coalesce(sum(cents), 0) as cents, sum(releases) as releases,
           sum(recoveries) as recoveries, sum(attempts) as attempts, count(entry) as entries,
           coalesce(sum(entry) filter (where entry > 0), 0) as posted, coalesce(sum(entry), 0) as balance
    from side_by_side
    group by payment_id
)
select
    count(*) filter (where state is not null),
    count(*) filter (where entries > 0),
    count(*) filter (where state = 'dead'),
    coalesce(sum(cents), 0),
    coalesce(sum(posted), 0),
    coalesce(sum(cents) filter (where state = 'dead'), 0),
    count(*) filter (where entries not in (0, 2)),
    count(*) filter (where entries > 0 and posted <> cents),
    count(*) filter (where state = 'dead' and entries > 0),
    count(*) filter (where state = 'dead' and coalesce(error, '') = ''),
    count(*) filter (where state not in ('completed', 'dead')),
    count(*) filter (where state = 'completed' and entries = 0),
    coalesce(sum(balance), 0),
    coalesce(sum(attempts), 0),
    coalesce(sum(recoveries), 0),
    coalesce(sum(releases), 0)
from payment
