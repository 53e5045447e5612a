-- Stores a heartbeat of a holder, and returns the instruction for it as JSON: the newest instruction that selects the
-- holder and has not ended. Null: there is none.
-- $1 text id   $2 text role   $3 text[] queues   $4 integer slots   $5 integer busy   $6 text version   $7 text conditions
-- $8 boolean whether the holder counts jobs for the statistics   $9 integer protocol   $10 text mode
insert into sluice.holder as h (id, role, queues, slots, busy, version, conditions, counts, protocol, mode)
values ($1::text, $2::text, $3::text[], $4::integer, $5::integer, $6::text, $7::text, $8::boolean, $9::integer, $10::text)
on conflict (id) do update
set queues = excluded.queues, slots = excluded.slots, busy = excluded.busy, seen = now(), conditions = excluded.conditions,
    counts = excluded.counts, version = excluded.version, protocol = excluded.protocol, mode = excluded.mode
returning (
    select json_build_object('scope', i.scope, 'name', i.name, 'wanted', i.wanted, 'until', i.until, 'changed_at', i.changed_at,
                             'changed_by', i.changed_by, 'reason', i.reason, 'version', i.version)::text
    from sluice.instruction i
    where (i.scope = 'all' or i.scope = 'holder' and i.name = $1::text or i.scope = 'version' and i.name = $6::text)
      and (i.until is null or i.until > now())
    order by i.changed_at desc
    limit 1)
