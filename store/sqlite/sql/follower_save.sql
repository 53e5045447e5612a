-- Stores a follower, or changes it.
-- ?1 name   ?2 queue   ?3 states, with commas in between   ?4 statement   ?5 now
insert into sluice_follower (name, queue, states, statement, made_at) values (?1, ?2, ?3, ?4, ?5)
on conflict (name) do update set queue = excluded.queue, states = excluded.states, statement = excluded.statement, made_at = excluded.made_at
