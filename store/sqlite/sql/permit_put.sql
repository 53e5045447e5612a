-- Stores how many jobs a claim took from a queue with a rate, and how many of them have begun or never will.
-- ?1 queue   ?2 claimed_at   ?3 token   ?4 jobs   ?5 begun   ?6 gone   ?7 check_at
insert into sluice_permit (queue, claimed_at, token, jobs, begun, gone, check_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict (queue, claimed_at, token) do update set begun = excluded.begun, gone = excluded.gone, check_at = excluded.check_at
