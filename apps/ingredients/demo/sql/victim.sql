-- Jobs that a killed process held and that were not recovered and finished by somebody else, with what is known of them.
-- $1 uuid[] jobs; $2 text its number.
select format('%s %s, %s recoveries, %s releases: %s', j.id, j.state, j.recoveries, j.releases,
    (select string_agg(format('%s in attempt %s by %s', t.what, t.attempt, t.resolved_by), ', ' order by t.id)
     from ingredients.trail t where t.job = j.id))
from sluice.jobs j
where j.id = any($1::uuid[]) and not coalesce(j.finished_at is not null and j.recoveries > 0
  and not exists (
      select from ingredients.trail t
      where t.job = j.id and t.what in ('matched', 'on hold', 'not food', 'failed') and split_part(t.resolved_by, ':', 2) = $2::text), false)
