-- The status of a payment.
-- $1 id
select status
from payment
where id = $1
