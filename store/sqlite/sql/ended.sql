-- Which of some jobs have ended or are not stored, with their ends, and whether the result was removed.
-- ?1 ids as a JSON array of hexadecimal texts
select unhex(given.value), d.outcome, d.result, coalesce(length(d.result) = 0, 0), d.error, d.finished_at
from json_each(?1) given
left join sluice_job j on j.id = unhex(given.value)
left join sluice_done d on d.seq = j.seq
    and d.generation = (select max(x.generation) from sluice_done x where x.seq = j.seq)
where not exists (select 1 from sluice_live l where l.seq = j.seq)
