-- The status of a payment, and why it failed.
-- $1 id
select status, failure
from payment
where id = $1
