-- Adds an entry to the ledger.
-- $1 payment   $2 account   $3 cents
insert into payment_entry (payment_id, account, cents)
values ($1, $2, $3)
