-- Deletes tenant queues. They are found by their places, which nobody else can have changed.
-- $1 tid[] places
delete from sluice.tenant_queue where ctid = any ($1::tid[])
