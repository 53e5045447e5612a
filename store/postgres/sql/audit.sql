-- Lists a page of the audit, the newest first.
-- $1 text object ('': all)   $2 text name ('': all)   $3 uuid job (null: all)   $4 bigint before (0: from the newest)   $5 integer limit
-- $6 text actor, or the first words of it ('': all)   $7 text event ('': all)   $8 bigint after
select seq, at, actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id
from sluice.audit
where ($1::text = '' or object = $1::text) and ($2::text = '' or name = $2::text)
  and ($3::uuid is null or job_id = $3::uuid)
  and ($4::bigint = 0 or seq < $4::bigint) and seq > $8::bigint
  and ($6::text = '' or actor = $6::text or starts_with(actor, $6::text || ' ')) and ($7::text = '' or event = $7::text)
order by seq desc
limit $5::integer
