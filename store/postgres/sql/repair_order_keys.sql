-- Deletes order keys without an unfinished job. The statement skips a locked order key, because an enqueue uses the key
-- now.
-- $1 text queue and $2 text order key after which the slice begins   $3 integer limit
with last as materialized (
    select queue, order_key
    from (select queue, order_key from sluice.order_key
          where (queue, order_key) > ($1::text, $2::text)
          order by queue, order_key
          limit $3::integer) slice
    order by queue desc, order_key desc
    limit 1
), old as materialized (
    select k.queue, k.order_key
    from sluice.order_key k
    where (k.queue, k.order_key) > ($1::text, $2::text)
      and (k.queue, k.order_key) <= ((select queue from last), (select order_key from last))
      and (select true from sluice.live l where l.queue = k.queue and l.order_key = k.order_key order by l.order_place limit 1) is null
    for update of k skip locked
), gone as (
    delete from sluice.order_key k using old o
    where k.queue = o.queue and k.order_key = o.order_key
      and (k.queue, k.order_key) > ($1::text, $2::text)
      and (k.queue, k.order_key) <= ((select queue from last), (select order_key from last))
)
select queue, order_key from last
