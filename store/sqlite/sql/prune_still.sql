-- Lists the finished lives of a list that nobody has requeued meanwhile.
-- ?1 [seq, generation] of each as a JSON array
select d.seq
from json_each(?1) o
join sluice_done d on d.seq = json_extract(o.value, '$[0]') and d.generation = json_extract(o.value, '$[1]')
where d.requeued_at is null
