-- Of jobs that a killed process held: how many were recovered and finished by somebody else. $1 uuid[] jobs; $2 text its number.
select count(*) from sluice.jobs j
where j.id = any($1::uuid[]) and j.finished_at is not null and j.recoveries > 0
  and not exists (
      select from ingredients.trail t
      where t.job = j.id and t.what in ('matched', 'on hold', 'not food', 'failed') and split_part(t.resolved_by, ':', 2) = $2::text)
