-- Lists the jobs with an intended or open run among given jobs of a queue, by id. If somebody deleted a row in
-- sluice_job, created_at is 0: see orphans_drop.sql.
-- ?1 queue   ?2 after (id)   ?3 limit   ?4 now   ?5 ids as a JSON array of hexadecimal texts
-- ?6 whether only claims whose lease ran out
select l.seq, l.run_of, l.queue, l.tenant, l.priority, j.key, j.labels, j.max_attempts, coalesce(j.created_at, 0), l.expires_at, l.state,
       {{l.life}}, l.lease_until, l.ref,
       (select b.id from sluice_job b where b.seq = l.blocked_by), null, l.error, null, null, null,
       {{j.more}}, l.engine, l.token
from (select distinct unhex(value) as id from json_each(?5)) given
cross join sluice_live l indexed by sluice_live_engine on l.queue = ?1 and l.run_of = given.id
left join sluice_job j on j.seq = l.seq
where l.run_of > ?2 and l.engine is not null and l.state in ('claimed', 'dispatched')
  and (not ?6 or l.state = 'claimed' and l.lease_until < ?4)
order by l.run_of
limit ?3 + 0
