-- Finds the first queue and outcome of the history from a place on, and how long its jobs are kept, in ms.
-- ?1 queue   ?2 outcome   ?3, ?4, ?5 default keep of completed, cancelled, dead in ms
select c.queue, c.outcome, case c.outcome
    when 'completed' then coalesce(q.keep_completed_ms, ?3)
    when 'cancelled' then coalesce(q.keep_cancelled_ms, ?4)
    else coalesce(q.keep_dead_ms, ?5) end
from (select queue, outcome from sluice_done
      where (queue, outcome) >= (?1, ?2) and requeued_at is null
      order by queue, outcome limit 1) c
left join sluice_queue q on q.name = c.queue
