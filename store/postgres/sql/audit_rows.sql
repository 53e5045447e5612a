-- Reads entries of the audit in order, as they are stored.
-- $1 bigint above   $2 bigint up to   $3 integer limit
select seq, at, actor, object, name, event, from_state, to_state, reason, generation, job_id, act_id, before, after
from sluice.audit
where seq > $1::bigint and seq <= $2::bigint
order by seq
limit $3::integer
