-- Locks queued jobs whose expires_at has passed. The statement skips a locked job, because another transaction claims
-- or replaces it now.
-- $1 integer limit
select id from sluice.live
where expires_at <= now() and state = 'queued'
order by expires_at
limit $1::integer
for update skip locked
