-- Stores progress reports of claimed jobs, instead of their earlier reports.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 double precision[] fractions   $4 text[] messages
-- The series makes the server expect many ids. The lateral join finds the jobs one by one; another join may compare all pairs.
insert into sluice.progress (id, claimed_at, fraction, message)
select g.id, l.claimed_at, g.fraction, g.message
from rows from (unnest($1::uuid[], $2::uuid[], $3::double precision[], $4::text[]), generate_series(1, cardinality($1::uuid[]))) as g(id, token, fraction, message)
cross join lateral (select w.token, w.state, w.claimed_at from sluice.live w where w.id = g.id offset 0) l
where l.token = g.token and l.state = 'claimed'
order by g.id
on conflict (id) do update
set claimed_at = excluded.claimed_at, fraction = excluded.fraction, message = excluded.message, reported_at = excluded.reported_at
