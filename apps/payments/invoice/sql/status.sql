-- The status of an invoice, and why it failed.
-- $1 id
select status, failure
from invoice
where id = $1
