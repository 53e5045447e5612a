-- Lists a page of unfinished jobs, the newest first.
-- ?1 queue ('': all)   ?2 tenant ('': all)   ?3 key ('': all)   ?4 states as a JSON array   ?5 labels as a JSON object ('{}': all)
-- ?6 below (seq)   ?7 limit
-- ?8 attempts at least   ?9 recoveries at least   ?10 from (seq)
select l.seq, {{j.job}}, l.state,
       {{l.life}}, l.lease_until, l.ref,
       (select b.id from sluice_job b where b.seq = l.blocked_by), null, l.error, null, null, null,
       {{j.more}}, l.engine
from sluice_live l
join sluice_job j on j.seq = l.seq
where (?1 = '' or l.queue = ?1) and (?2 = '' or l.tenant = ?2) and (?3 = '' or j.key = ?3)
  and l.state in (select value from json_each(?4))
  and l.attempts >= ?8 and l.recoveries >= ?9
  and not exists (select 1 from json_each(?5) want
                  where not exists (select 1 from json_each(j.labels) has where has.key = want.key and has.value = want.value))
  and l.seq < ?6 and l.seq >= ?10
order by l.seq desc
limit ?7 + 0
