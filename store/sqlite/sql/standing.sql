-- Reads the state of a job that a move did not change, and the token of the claim that led there.
-- ?1 id
select v.seq, v.queue, v.state, v.generation, iif(l.seq is null, d.token, l.token), v.due_at, v.expires_at
from sluice_jobs v
left join sluice_live l on l.seq = v.seq
left join sluice_done d on d.seq = v.seq and d.generation = v.generation and l.seq is null
where v.id = ?1
