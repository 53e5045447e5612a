-- Stores that a conversation goes on. $1: its id; $2: now.
insert into conversation (id, created_at, updated_at) values ($1, $2, $2)
on conflict (id) do update set updated_at = excluded.updated_at
