-- A slice of the history, with whether each is a job's last life that was kept as long as its queue asks.
-- ?1 after (seq)   ?2 limit   ?3 now   ?4, ?5, ?6 default keep of completed, cancelled, dead in ms
select s.seq, s.requeued_at is null and s.keep_ms > 0 and s.finished_at < ?3 - s.keep_ms * 1000, s.id
from (
    select d.seq, d.generation, d.finished_at, d.requeued_at, j.id, case d.outcome
        when 'completed' then coalesce(q.keep_completed_ms, ?4)
        when 'cancelled' then coalesce(q.keep_cancelled_ms, ?5)
        else coalesce(q.keep_dead_ms, ?6) end as keep_ms
    from (select * from sluice_done where seq > ?1 order by seq, generation limit ?2) d
    join sluice_job j on j.seq = d.seq
    left join sluice_queue q on q.name = d.queue
) s
order by s.seq, s.generation
