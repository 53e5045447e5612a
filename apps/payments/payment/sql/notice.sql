-- Tells a party of a payment, once.
-- $1 payment   $2 party   $3 now
insert into payment_notice (payment_id, party, sent_at)
values ($1, $2, $3)
on conflict do nothing
