-- Keeps an invoice as its job is, with each move of the job; see sluice.Follower. A job that completes while its invoice is
-- issued was uncertain, and a person has said that the invoice was sent.
update invoice
set status = case
        when moved.state = 'completed' then 'SENT'
        when moved.state = 'queued' and status = 'FAILED' then 'ISSUED'
        when moved.state <> 'queued' and status = 'ISSUED' then 'FAILED'
        else status end,
    failure = case
        when moved.state = 'queued' then ''
        when moved.state = 'completed' then 'a person says that it was sent'
        when moved.error = '' then moved.state
        else moved.state || ': ' || moved.error end
where id = moved.key and (moved.state <> 'completed' or status = 'ISSUED')
