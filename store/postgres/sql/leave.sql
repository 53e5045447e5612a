-- Deletes a holder that ends, and its leads.
-- $1 text id
with resigned as (delete from sluice.lead where holder = $1::text)
delete from sluice.holder where id = $1::text
