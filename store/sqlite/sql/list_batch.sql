-- Lists a page of the jobs of one batch, finished or not, the newest first, along the index sluice_job_by_batch.
-- ?1 queue ('': all)   ?2 tenant ('': all)   ?3 key ('': all)   ?4 states as a JSON array   ?5 labels as a JSON object ('{}': all)
-- ?6 below (seq)   ?7 limit
-- ?8 attempts at least   ?9 recoveries at least   ?10 from (seq)   ?11 batch
select j.seq, {{j.job}},
       coalesce(l.state, d.outcome), coalesce(l.generation, d.generation), coalesce(l.due_at, d.due_at), coalesce(l.attempts, d.attempts),
       coalesce(l.releases, d.releases), coalesce(l.recoveries, d.recoveries), iif(l.seq is null, d.holder, l.holder),
       iif(l.seq is null, d.claimed_at, l.claimed_at), iif(l.seq is null, d.dispatched_at, l.dispatched_at), l.lease_until,
       iif(l.seq is null, d.ref, l.ref), (select b.id from sluice_job b where b.seq = l.blocked_by), d.finished_at,
       iif(l.seq is null, d.error, l.error), null, null, null,
       {{j.more}}, l.engine
from sluice_job j indexed by sluice_job_by_batch
left join sluice_live l on l.seq = j.seq
left join sluice_done d on l.seq is null and d.seq = j.seq and d.requeued_at is null
where j.batch_id = ?11 and (?2 = '' or j.tenant = ?2) and (?1 = '' or j.queue = ?1) and (?3 = '' or j.key = ?3)
  and coalesce(l.state, d.outcome) in (select value from json_each(?4))
  and coalesce(l.attempts, d.attempts) >= ?8 and coalesce(l.recoveries, d.recoveries) >= ?9
  and not exists (select 1 from json_each(?5) want
                  where not exists (select 1 from json_each(j.labels) has where has.key = want.key and has.value = want.value))
  and j.seq < ?6 and j.seq >= ?10
order by j.seq desc
limit ?7 + 0
