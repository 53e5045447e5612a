-- Reads the clock for the start of a new operation.
select now()
