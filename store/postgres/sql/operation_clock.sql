-- The clock by which a new operation begins.
select now()
