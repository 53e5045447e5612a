-- How far the wave has come: payments by status, and jobs by state.
-- $1 queue
select
    (select count(*) from payment where status = 'SCHEDULED'),
    (select count(*) from payment where status = 'ACCEPTED'),
    (select count(*) from payment where status = 'PROCESSING'),
    count(*) filter (where state = 'queued'),
    count(*) filter (where state = 'claimed'),
    count(*) filter (where state = 'dispatched'),
    count(*) filter (where state = 'completed'),
    count(*) filter (where state not in ('queued', 'claimed', 'dispatched', 'completed'))
from (
    select state from sluice_live where queue = $1
    union all
    select outcome from sluice_done where queue = $1
) job
