-- Lists the jobs of a list with an order key or an `after`, with their order keys.
-- $1 uuid[] ids
select id, queue, coalesce(order_key, '') from sluice.job
where id = any ($1::uuid[]) and (order_key is not null or after is not null)
order by id
