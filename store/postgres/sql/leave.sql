-- Forgets a holder that ends.
-- $1 text id
delete from sluice.holder where id = $1::text
