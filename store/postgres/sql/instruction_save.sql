-- Stores an instruction as the newest, unless somebody else changed it in between.
-- $1 text scope   $2 text name   $3 bigint the version it was read with (0: new)   $4 text wanted   $5 timestamptz until
-- $6 text by whom   $7 text reason   $8 uuid act
insert into sluice.instruction as i (scope, name, wanted, until, changed_at, changed_by, reason, act_id)
select $1::text, $2::text, $4::text, $5::timestamptz,
       greatest(clock_timestamp(), (select max(o.changed_at) from sluice.instruction o) + interval '1 microsecond'), $6::text, $7::text, $8::uuid
where $3::bigint = 0 or exists (select from sluice.instruction where scope = $1::text and name = $2::text)
on conflict (scope, name) do update
set version = i.version + 1, wanted = excluded.wanted, until = excluded.until, changed_at = excluded.changed_at,
    changed_by = excluded.changed_by, reason = excluded.reason, act_id = excluded.act_id
where i.version = $3::bigint
returning changed_at
