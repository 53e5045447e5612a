-- Returns how the jobs of a list ended, and whether the result was removed. An unfinished job gives no row; a job that
-- is not stored gives a row without an outcome.
-- ?1 ids as a JSON array of hexadecimal texts
select unhex(given.value), d.outcome, d.result, coalesce(length(d.result) = 0, 0), d.error, d.finished_at
from json_each(?1) given
left join sluice_job j on j.id = unhex(given.value)
left join sluice_done d on d.seq = j.seq
    and d.generation = (select max(x.generation) from sluice_done x where x.seq = j.seq)
where not exists (select 1 from sluice_live l where l.seq = j.seq)
