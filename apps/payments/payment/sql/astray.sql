-- Lists the payments that do not say what became of their jobs. A job that was pruned had ended.
-- {jobs} the view of jobs
select p.id || ' is ' || p.status || ' (' || p.failure || '), its job ' || coalesce(j.state, 'pruned')
from payment p left join {jobs} j on j.queue = 'payment' and j.key = p.id
where case
    when j.state = 'completed' then p.status <> 'PROCESSING' or (p.failure <> '') = exists (select 1 from payment_entry e where e.payment_id = p.id)
    when j.state in ('dead', 'cancelled') then p.status = 'SCHEDULED' or p.failure = ''
    when j.state is null then p.status <> 'PROCESSING' and p.failure = ''
    else p.status = 'FAILED' or p.failure <> ''
end
order by p.id
