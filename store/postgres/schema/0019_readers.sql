-- 0019 Readers: roles that may look at everything but payloads, results, checkpoints and tokens.
-- locks: queue_grant, for a moment.
-- works with programs from: 8

alter table sluice.queue_grant
    drop constraint queue_grant_may_check,
    add constraint queue_grant_may_check check (may in ('work', 'produce', 'operate', 'read')); -- 'read' is of every queue

-- The text that bytes are in UTF-8; null: they are none. Everybody may call it: it reads nothing, and views that use it run
-- it with the rights of the role that selects from them.
create function sluice._text_of(bytes bytea) returns text
language plpgsql immutable strict set search_path = pg_catalog, pg_temp as $function$
begin
    return convert_from(bytes, 'UTF8');
exception when others then
    return null;
end
$function$;
grant execute on function sluice._text_of(bytea) to public;

create or replace view sluice.jobs as
select j.id, j.queue, j.tenant, j.priority, j.key, j.labels, j.max_attempts, j.created_at, j.expires_at,
       coalesce(l.state, d.outcome) as state,
       coalesce(l.generation, d.generation) as generation,
       coalesce(l.due_at, d.due_at) as due_at,
       coalesce(l.attempts, d.attempts) as attempts,
       coalesce(l.releases, d.releases) as releases,
       coalesce(l.recoveries, d.recoveries) as recoveries,
       case when l.id is null then d.holder else l.holder end as holder,
       case when l.id is null then d.claimed_at else l.claimed_at end as claimed_at,
       l.lease_until, l.blocked_by,
       case when l.id is null then d.ref else l.ref end as ref,
       case when l.id is null then d.error else l.error end as error,
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure, l.engine,
       sluice._text_of(j.payload) as payload_text,
       sluice._text_of(d.result) as result_text
from sluice.job j
left join sluice.live l on l.id = j.id
left join lateral (
    select * from sluice.done d where d.id = j.id and l.id is null order by d.generation desc limit 1
) d on true;

-- The same without payload, result and checkpoint: for readers and dashboards, who may select all of it.
create view sluice.job_status as
select id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at, state, generation, due_at, attempts,
       releases, recoveries, holder, claimed_at, lease_until, blocked_by, ref, error, finished_at, order_key, after,
       after_failure, engine
from sluice.jobs;
