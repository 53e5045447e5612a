-- Stores a payment, unless its id is taken.
-- $1 id   $2 payer   $3 payee   $4 cents   $5 currency   $6 due at   $7 status   $8 workflow of phase A   $9 now
insert into payment (id, payer, payee, cents, currency, due_at, status, init_workflow, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict do nothing
