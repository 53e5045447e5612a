-- Lists queues with a retention of their own for results, by outcome: the retention in ms, and how far results were
-- removed.
select q.name, o.value, q.keep_results_ms, coalesce(c.upto, 0)
from sluice_queue q
cross join json_each('["cancelled","completed","dead"]') o
left join sluice_result_cursor c on c.queue = q.name and c.outcome = o.value
where q.keep_results_ms > 0
order by q.name
