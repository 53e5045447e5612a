-- Jobs that wait for others of which some have ended, and for which each waits now.
-- ?1 seqs that have ended, as a JSON array   ?2 seqs of jobs to look at whatever they wait for, as a JSON array
-- ?3 after (seq)   ?4 limit
with found (seq) as (
    select w.seq from json_each(?1) e cross join sluice_live w on w.blocked_by = e.value
    union
    select a.seq from json_each(?1) e cross join sluice_after a on a.after_seq = e.value
    union
    select value from json_each(?2)
)
select l.seq, j.id, l.queue, l.order_key, l.blocked_by, b.seq is not null and b.seq <> l.seq, j.after_failure
from found f
cross join sluice_live l on l.seq = f.seq
cross join sluice_job j on j.seq = l.seq
left join sluice_live b on b.seq = l.blocked_by
where l.blocked_by is not null and l.seq > ?3
order by l.seq
limit ?4 + 0
