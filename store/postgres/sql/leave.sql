-- Forgets a holder that ends, and gives back what it leads.
-- $1 text id
with resigned as (delete from sluice.lead where holder = $1::text)
delete from sluice.holder where id = $1::text
