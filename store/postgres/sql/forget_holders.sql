-- Deletes holders that have sent no heartbeat for an hour.
delete from sluice.holder where seen < now() - interval '1 hour'
