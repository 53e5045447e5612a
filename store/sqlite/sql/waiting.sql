-- Lists jobs whose blockers may have ended: whether the present blocker still counts, and a job of `after` that fails
-- the waiting job. For a job in ?2, any job of its `after` may have ended before it was stored. A job need not wait for
-- a later job of its order that waits itself: that job was let go once, and is held now.
-- ?1 seqs that have ended, as a JSON array   ?2 seqs of jobs to look at whatever they wait for, as a JSON array
-- ?3 after (seq)   ?4 limit
with ended (seq, outcome) as materialized (
    select e.value, (select d.outcome from sluice_done d where d.seq = e.value order by d.generation desc limit 1)
    from json_each(?1) e
), found (seq, broken) as (
    select seq, min(broken)
    from (
        select w.seq, null as broken from ended e cross join sluice_live w on w.blocked_by = e.seq
        union all
        select a.seq, a.after_id from ended e cross join sluice_job p on p.seq = e.seq cross join sluice_after a on a.after_id = p.id
        where e.outcome is not 'completed' and not exists (select 1 from sluice_live l where l.seq = e.seq)
          and (a.rule = 'cancel' or a.rule = 'wait' and e.outcome is null)
        union all
        select look.value, (
            select min(a.after_id)
            from sluice_after a indexed by sluice_after_waiting
            left join sluice_job p on p.id = a.after_id
            where a.seq = look.value and not exists (select 1 from sluice_live l where l.seq = p.seq)
              and (a.rule = 'cancel' and (select d.outcome from sluice_done d where d.seq = p.seq order by d.generation desc limit 1)
                       is not 'completed'
                   or a.rule = 'wait' and not exists (select 1 from sluice_done d where d.seq = p.seq)))
        from json_each(?2) look)
    group by seq
)
select l.seq, j.id, l.queue, l.order_key, l.blocked_by,
       b.seq is not null and b.seq <> l.seq
           and not coalesce(b.order_key = l.order_key and b.queue = l.queue and b.seq > l.seq and b.blocked_by is not null and not b.parked, false),
       j.key is not null or l.order_key is not null,
       f.broken, coalesce((select d.outcome from sluice_done d where d.seq = broken.seq order by d.generation desc limit 1), ''), f.broken is not null
from found f
cross join sluice_live l on l.seq = f.seq
cross join sluice_job j on j.seq = l.seq
left join sluice_live b on b.seq = l.blocked_by
left join sluice_job broken on broken.id = f.broken
where l.blocked_by is not null and l.seq > ?3
order by l.seq
limit ?4 + 0
