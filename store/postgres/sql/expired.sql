-- Queued jobs whose expires_at has passed.
-- $1 integer limit
select id from sluice.live
where expires_at <= now() and state = 'queued'
order by expires_at
limit $1::integer
