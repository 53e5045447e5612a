-- Lists the executions whose record does not say what became of their job. A job that was pruned had ended.
-- {jobs} the view of jobs, {of execution} says which is an execution's
select e.id || ' is ' || e.state || ', its job ' || coalesce(j.state, 'pruned')
from workflow_executions e left join {jobs} j on {of execution}
where case
    when j.state = 'queued' then e.state <> 'waiting'
    when j.state = 'completed' then e.state <> 'completed'
    when j.state in ('dead', 'cancelled') then e.state <> 'failed'
    when j.state is null then e.state in ('waiting', 'running')
    else e.state in ('completed', 'failed')
end
order by e.id
