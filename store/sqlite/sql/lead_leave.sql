-- Gives back what a holder leads.
-- ?1 holder
delete from sluice_lead where holder = ?1
