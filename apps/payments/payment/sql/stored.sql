-- Finds a payment if it is stored just so.
-- $1 id   $2 payer   $3 payee   $4 cents   $5 currency   $6 due at
select id
from payment
where id = $1 and payer = $2 and payee = $3 and cents = $4 and currency = $5 and due_at = $6
