-- Lists the invoices that do not say what became of their jobs. A job that was pruned had ended.
-- {jobs} the view of jobs
select i.id || ' is ' || i.status || ' (' || i.failure || '), its job ' || coalesce(j.state, 'pruned')
from invoice i left join {jobs} j on j.queue = 'invoice' and j.key = i.id
where case
    when j.state = 'completed' then i.status <> 'SENT' or (i.failure <> '') = (i.sent_at is not null)
    when j.state in ('dead', 'cancelled') then i.status = 'ISSUED' or i.failure = ''
    when j.state is null then i.status <> 'SENT' and i.failure = ''
    else i.status = 'FAILED' or i.failure <> ''
end
order by i.id
