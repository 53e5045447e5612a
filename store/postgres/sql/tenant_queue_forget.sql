-- Deletes tenant queues. It finds them by their ctid, which no other transaction can have changed.
-- $1 tid[] places
delete from sluice.tenant_queue where ctid = any ($1::tid[])
