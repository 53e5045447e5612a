-- Keeps an invoice as its job is, with each move of the job; see sluice.Follower.
update invoice
set status = case
        when moved.state = 'queued' and status = 'FAILED' then 'ISSUED'
        when moved.state <> 'queued' and status = 'ISSUED' then 'FAILED'
        else status end,
    failure = case when moved.state = 'queued' then '' when moved.error = '' then moved.state else moved.state || ': ' || moved.error end
where id = moved.key
