-- Lists the buckets of a kind, and the counts of holders that upkeep has not added up yet. A row of such counts has
-- every_s = null, and its body in the column tenants. In other rows the column has all tenants or one tenant, if asked
-- for.
-- ?1 every_s   ?2 from   ?3 to   ?4 queues as JSON, null: all   ?5 tenant; empty: none   ?6 whether all tenants
-- ?7 limit; -1: none   ?8 to, for counts not added up yet   ?9 whether also buckets with nothing but a level
select * from (
    select every_s, at, queue, enqueued, requeued, claimed, dispatched, completed, dead, cancelled, uncertain,
           failed, released, recovered, start_failed, wait, run, total, level,
           case when ?6 then tenants when ?5 <> '' then (select t.value from json_each(tenants) t where t.key = ?5) else '' end
    from sluice_stat
    where every_s = ?1 and at >= ?2 and at < ?3 and (?4 is null or queue in (select value from json_each(?4)))
      and (?9 or enqueued + requeued + claimed + dispatched + completed + dead + cancelled + uncertain + failed + released
         + recovered + start_failed > 0)
    order by at, queue
    limit ?7 + 0
)
union all
select null, at, queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', body
from sluice_stat_part
where at >= ?2 and at < ?8 and (?4 is null or queue in (select value from json_each(?4)))
