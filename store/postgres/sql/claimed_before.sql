-- What an earlier claim with this token got, if its answer was lost. Where somebody deleted the row of a job, created_at is null.
-- $1 uuid token
select {{l.claimed}}, {{j.given}},
       {{j.more}}
from sluice.live l
left join lateral (select * from sluice.job w where w.id = l.id offset 0) j on true
where l.state = 'claimed' and l.token = $1::uuid
order by l.priority, l.due_at, l.id
