-- Stores a progress report of a claimed job, instead of its earlier report.
-- ?1 seq   ?2 fraction   ?3 message   ?4 now
insert into sluice_progress (seq, claimed_at, fraction, message, reported_at)
select l.seq, l.claimed_at, ?2, ?3, ?4 from sluice_live l where l.seq = ?1
on conflict (seq) do update
set claimed_at = excluded.claimed_at, fraction = excluded.fraction, message = excluded.message, reported_at = excluded.reported_at
