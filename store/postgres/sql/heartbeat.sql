-- Stores that a holder is alive.
-- $1 text id   $2 text role   $3 text[] queues   $4 integer slots   $5 integer busy   $6 text version   $7 text trouble
-- $8 boolean whether it counts for the statistics
insert into sluice.holder as h (id, role, queues, slots, busy, version, trouble, counts)
values ($1::text, $2::text, $3::text[], $4::integer, $5::integer, $6::text, $7::text, $8::boolean)
on conflict (id) do update
set queues = excluded.queues, slots = excluded.slots, busy = excluded.busy, seen = now(), trouble = excluded.trouble,
    counts = excluded.counts
