-- Notes for every receiver what it is to be told.
-- $1 text[] rules   $2 text[] queues   $3 text[] messages (JSON)
insert into sluice.alert_notice (receiver, rule, queue, message)
select r.name, m.rule, m.queue, m.message::jsonb
from unnest($1::text[], $2::text[], $3::text[]) with ordinality as m(rule, queue, message, place)
cross join sluice.alert_receiver r
order by m.place, r.name
