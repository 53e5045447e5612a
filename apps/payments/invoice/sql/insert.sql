-- Stores an invoice, unless its id is taken.
-- $1 id   $2 customer   $3 cents   $4 due at
insert into invoice (id, customer, cents, due_at)
values ($1, $2, $3, $4)
on conflict do nothing
