-- Reads a slice of the jobs that block others. For each blocker it returns whether jobs are stuck behind it, and how
-- many wait. Jobs are stuck if the blocker has ended, unless they wait for a person to requeue it. A job that waits for
-- itself is stuck unless a run of it is open, somebody holds it, or a limit parks it.
-- ?1 after (seq)   ?2 limit
select w.blocked_by, max(w.blocked_by = w.seq and not exists (select 1 from sluice_orphan_run s where s.job_id = j.id and not s.beside)
        and not exists (select 1 from sluice_hold h where h.job_id = j.id)
        and not (w.parked and exists (select 1 from sluice_limit_lane k where k.key = w.limit_key and k.queue = w.queue)
            and exists (select 1 from sluice_queue q cross join sluice_named_limit n where q.name = w.queue and n.per_key
                        and instr(',' || q.limits || ',', ',' || n.name || ',') > 0))
    or b.seq is null and not (
    exists (select 1 from sluice_job p cross join sluice_after a on a.after_id = p.id and a.seq = w.seq
        where p.seq = w.blocked_by and a.rule = 'wait')
    and coalesce((select d.outcome <> 'completed' from sluice_done d where d.seq = w.blocked_by order by d.generation desc limit 1), 0))), count(*)
from (select seq, blocked_by, parked, queue, limit_key from sluice_live where blocked_by > ?1 order by blocked_by limit ?2 + 0) w
join sluice_job j on j.seq = w.seq
left join sluice_live b on b.seq = w.blocked_by
group by w.blocked_by
order by w.blocked_by
