-- Returns the jobs that an earlier claim with this token got, in case its answer was lost. If somebody deleted a row in
-- sluice.job, created_at is null.
-- $1 uuid token
select {{l.claimed}}, {{j.given}},
       {{j.more}}
from sluice.live l
left join lateral (select * from sluice.job w where w.id = l.id offset 0) j on true
where l.state = 'claimed' and l.token = $1::uuid
order by l.priority, l.due_at, l.id
