-- Stores a failed attempt.
-- ?1 seq   ?2 generation   ?3 attempt   ?4 claimed_at   ?5 now   ?6 holder   ?7 error   ?8 stack or null
insert into sluice_attempt (seq, generation, attempt, claimed_at, failed_at, holder, error, stack)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
