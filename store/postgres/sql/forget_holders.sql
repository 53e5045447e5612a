-- Forgets holders that have not beaten for an hour.
delete from sluice.holder where seen < now() - interval '1 hour'
