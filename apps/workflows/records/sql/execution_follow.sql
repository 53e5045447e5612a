-- Keeps the record of an execution as its job is, with each move of the job; see sluice.Follower. The reason that a run
-- noted before it failed stays; it says more than what the engine tells of the run.
update workflow_executions
set state = case moved.state when 'completed' then 'completed' when 'queued' then 'waiting' else 'failed' end,
    error = case moved.state
        when 'dead' then case when error = '' then moved.error else error end
        when 'cancelled' then case when moved.error = '' then 'cancelled' else 'cancelled: ' || moved.error end
        else '' end,
    ended_at = case moved.state when 'queued' then 0 else moved.at end
where id = moved.id
