-- Settles what a payment costs, once.
-- $1 payment   $2 route   $3 fee in cents   $4 now
insert into payment_settlement (payment_id, route, fee_cents, settled_at)
values ($1, $2, $3, $4)
on conflict do nothing
