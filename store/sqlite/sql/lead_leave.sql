-- Deletes the leads of a holder.
-- ?1 holder
delete from sluice_lead where holder = ?1
