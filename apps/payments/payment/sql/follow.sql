-- Keeps a payment as its job is, with each move of the job; see sluice.Follower. One whose money was moved does not fail any
-- more: its status stays, and the failure says what is still to be done.
update payment
set status = case
        when moved.state = 'queued' and status = 'FAILED' then 'SCHEDULED'
        when moved.state <> 'queued' and status = 'SCHEDULED' then 'FAILED'
        else status end,
    failure = case when moved.state = 'queued' then '' when moved.error = '' then moved.state else moved.state || ': ' || moved.error end
where id = moved.key
