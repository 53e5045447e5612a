-- Locks order keys, so that jobs get their places in the order in which they are stored. The lock lasts until the end
-- of the transaction. Meanwhile only other enqueues with the same order key wait.
-- $1 text[] queues and $2 text[] order keys, sorted by both and unique
insert into sluice.order_key as k (queue, order_key)
select g.queue, g.order_key from unnest($1::text[], $2::text[]) as g(queue, order_key)
on conflict (queue, order_key) do update set queue = excluded.queue
