-- Keeps a payment as its job is, with each move of the job; see sluice.Follower. One whose money was moved does not fail any
-- more: its status stays, and the failure says what is still to be done. A job that completes while its payment is scheduled was
-- uncertain, and a person has said that the payment was executed: nobody is to execute it again, and the ledger knows nothing of it.
update payment
set status = case
        when moved.state = 'completed' then 'PROCESSING'
        when moved.state = 'queued' and status = 'FAILED' then 'SCHEDULED'
        when moved.state <> 'queued' and status = 'SCHEDULED' then 'FAILED'
        else status end,
    failure = case
        when moved.state = 'queued' then ''
        when moved.state = 'completed' then 'a person says that it was executed; the ledger has no entries of it'
        when moved.error = '' then moved.state
        else moved.state || ': ' || moved.error end
where id = moved.key and (moved.state <> 'completed' or status = 'SCHEDULED')
