-- Stores a new batch, or nothing if its id is taken.
-- $1 uuid id   $2 text name   $3 uuid parent (null: none)   $4 text callbacks   $5 text by whom   $6 text why it is paused (empty: not paused)
insert into sluice.batch (id, name, parent, callbacks, created_by, paused)
values ($1::uuid, $2::text, $3::uuid, $4::text, $5::text, $6::text)
on conflict (id) do nothing
returning true
