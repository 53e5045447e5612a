-- Stores the rule for new queues, unless somebody else has changed it since it was read.
-- $1 bigint max_queues   $2 boolean declared   $3 bigint the version it was read with (0: new)   $4 text by whom   $5 text reason
insert into sluice.queue_policy as p (max_queues, declared, changed_by, reason)
select $1::bigint, $2::boolean, $4::text, $5::text
where $3::bigint = 0 or exists (select from sluice.queue_policy)
on conflict (id) do update
set max_queues = excluded.max_queues, declared = excluded.declared, version = p.version + 1, changed_at = now(),
    changed_by = excluded.changed_by, reason = excluded.reason
where p.version = $3::bigint
returning changed_at
