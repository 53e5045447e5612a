-- Lists a page of the changes of one object, such as a queue, the newest first, along the index audit_change: a dispatcher
-- adds an entry of its queue in each cycle.
-- $1 text object   $2 text name   $3 bigint before (0: from the newest)   $4 integer limit
-- $5 text actor, or the first words of it ('': all)   $6 bigint after
select seq, at, actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id
from sluice.audit
where object = $1::text and name = $2::text and event = 'change'
  and ($3::bigint = 0 or seq < $3::bigint) and seq > $6::bigint
  and ($5::text = '' or actor = $5::text or starts_with(actor, $5::text || ' '))
order by seq desc
limit $4::integer
