-- Lists a page of the claims of a queue with an intended run and an expired lease, by id, along the index
-- sluice_live_claimed. If somebody deleted a row in sluice_job, created_at is 0: see orphans_drop.sql.
-- ?1 queue   ?2 after (id)   ?3 limit   ?4 now
select l.seq, l.run_of, l.queue, l.tenant, l.priority, j.key, j.labels, j.max_attempts, coalesce(j.created_at, 0), l.expires_at, l.state,
       {{l.life}}, l.lease_until, l.ref,
       (select b.id from sluice_job b where b.seq = l.blocked_by), null, l.error, null, null, null,
       {{j.more}}, l.engine, l.token
from sluice_live l indexed by sluice_live_claimed
left join sluice_job j on j.seq = l.seq
where l.queue = ?1 and l.run_of > ?2 and l.engine is not null and l.state = 'claimed' and l.lease_until < ?4
order by l.run_of
limit ?3 + 0
