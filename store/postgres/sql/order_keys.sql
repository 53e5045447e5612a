-- Those of some jobs that have their places among others, and the order keys of these.
-- $1 uuid[] ids
select id, queue, coalesce(order_key, '') from sluice.job
where id = any ($1::uuid[]) and (order_key is not null or after is not null)
order by id
