-- Lists queues with a retention of their own for results, by outcome: the retention in ms, and how far results were
-- removed. A cursor at an instant to come is from before the clock was set back: jobs have ended before it since.
-- ?1 now
select q.name, o.value, q.keep_results_ms, iif(c.upto <= ?1, c.upto, 0)
from sluice_queue q
cross join json_each('["cancelled","completed","dead"]') o
left join sluice_result_cursor c on c.queue = q.name and c.outcome = o.value
where q.keep_results_ms > 0
order by q.name
