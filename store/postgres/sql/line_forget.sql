-- Deletes lines. They are found by their places, which nobody else can have changed.
-- $1 tid[] places
delete from sluice.line where ctid = any ($1::tid[])
