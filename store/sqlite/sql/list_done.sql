-- Lists a page of finished jobs, the newest first, without jobs that live again.
-- ?1 queue ('': all)   ?2 tenant ('': all)   ?3 key ('': all)   ?4 outcomes as a JSON array   ?5 labels as a JSON object ('{}': all)
-- ?6 below (seq)   ?7 limit
-- ?8 attempts at least   ?9 recoveries at least   ?10 from (seq)
select d.seq, {{j.job}}, d.outcome,
       {{d.life}}, null, d.ref, null,
       d.finished_at, d.error, null, null, null,
       {{j.more}}, null
from sluice_done d
join sluice_job j on j.seq = d.seq
where (?1 = '' or d.queue = ?1) and (?2 = '' or d.tenant = ?2) and (?3 = '' or j.key = ?3)
  and d.outcome in (select value from json_each(?4)) and d.requeued_at is null
  and d.attempts >= ?8 and d.recoveries >= ?9
  and not exists (select 1 from json_each(?5) want
                  where not exists (select 1 from json_each(j.labels) has where has.key = want.key and has.value = want.value))
  and d.seq < ?6 and d.seq >= ?10
order by d.seq desc
limit ?7 + 0
