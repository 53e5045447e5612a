-- Stores the tokens of a queue's rate after a claim.
-- ?1 queue   ?2 tokens   ?3 filled_at
insert into sluice_flow (queue, tokens, filled_at) values (?1, ?2, ?3)
on conflict (queue) do update set tokens = excluded.tokens, filled_at = excluded.filled_at
