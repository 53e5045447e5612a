-- Deletes a holder that ends.
-- ?1 id
delete from sluice_holder where id = ?1
