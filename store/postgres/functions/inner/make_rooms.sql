-- Finds room for the jobs of a call, first for tenants, then for queues. The caller gives the jobs' queues. The
-- function passes over queues in which the caller may not enqueue, and over jobs that an earlier call has stored: they
-- may be what fills the queue. It passes over jobs too whose key another job holds, because nothing may be shed for them.
create or replace function sluice._make_rooms(items json[], queues text[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    limited constant text[] := array(select q.name from sluice.queue q where q.name = any (queues) and (q.max_waiting > 0 or q.tenant_max_waiting > 0));
    wants   record;
begin
    if limited = '{}' then
        return;
    end if;
    for wants in
        with given as (
            select q.name, q.max_waiting, q.tenant_max_waiting, q.shed, coalesce(i ->> 'tenant', '') as tenant,
                   case when i ->> 'priority' ~ '^([1-9]|10)$' then (i ->> 'priority')::integer else 5 end as priority
            from unnest(items) as i
            join sluice.queue q on q.name = i ->> 'queue'
            where q.name = any (array(select l from unnest(limited) as l where sluice._may('produce', l)))
              and not exists (select from sluice.job j where j.id = sluice._uuid_of(i))
              and not (coalesce(i ->> 'on_duplicate', 'keep') = 'keep' and exists (
                  select from sluice.job_key k
                  where k.queue = q.name and k.key = i ->> 'key'
                    and (k.until > clock_timestamp() or k.until is null and exists (select from sluice.live l where l.id = k.job_id))))
        )
        select name, tenant, count(*)::integer as jobs, max(priority) as below, tenant_max_waiting as most, shed
        from given where tenant <> '' and tenant_max_waiting > 0 group by 1, 2, 5, 6
        union all
        select name, '', count(*)::integer, max(priority), max_waiting, shed
        from given where max_waiting > 0 group by 1, 5, 6
        order by 1, 2 desc
    loop
        perform sluice._make_room(wants.name, wants.tenant, wants.jobs, wants.below, wants.most, wants.shed);
    end loop;
end
$function$;
