-- The status of an invoice.
-- $1 id
select status
from invoice
where id = $1
