-- Forgets runs whose jobs were cancelled.
-- $1 uuid[] jobs   $2 text[] refs
delete from sluice.stray_run s
using unnest($1::uuid[], $2::text[]) as g(job_id, ref)
where s.job_id = g.job_id and s.ref = g.ref
