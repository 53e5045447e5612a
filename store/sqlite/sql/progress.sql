-- Reads the progress reports of jobs whose attempt goes on. A report of an earlier attempt does not count.
-- ?1 ids as a JSON array of hexadecimal texts
select j.id, p.fraction, p.message, p.reported_at
from json_each(?1) g
cross join sluice_job j on j.id = unhex(g.value)
cross join sluice_progress p on p.seq = j.seq
cross join sluice_live l on l.seq = j.seq
where l.claimed_at = p.claimed_at and l.state = 'claimed'
