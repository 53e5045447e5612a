-- Reads the tenant changes of a queue, puts due jobs into their tenant queues, and wakes the tenant queues whose time
-- has come. The caller holds the lock of the queue's row in flow.
create or replace function sluice._fill_tenant_queues(of_queue text, now_at timestamptz, low_water double precision, inout wakes_from timestamptz, out more boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    tenants text[] := '{}'; jobs integer[] := '{}'; dues timestamptz[] := '{}'; rooms boolean[] := '{}'; terms boolean[] := '{}';
    tenant text; job integer; due timestamptz; room boolean; term boolean; change_at timestamptz;
    priority integer; job_id uuid;
    changes integer := 0; adopted integer := 0; woken bigint; last timestamptz;
begin
    for tenant, job, due, room, term, change_at in execute {{tenant_change_take.sql}} using of_queue, '-infinity'::timestamptz, {{max tenant changes}} loop
        changes := changes + 1;
        tenants := tenants || tenant; jobs := jobs || job; dues := array_append(dues, due); rooms := rooms || room; terms := terms || term;
    end loop;
    for tenant, priority, due, job_id in execute {{tenant_queue_adopt.sql}}
        using of_queue, '{1,2,3,4,5,6,7,8,9,10}'::smallint[], array_fill('-infinity'::timestamptz, array[10]),
            array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[10]), {{max moved}}, interval '0'
    loop
        adopted := adopted + 1;
        tenants := tenants || tenant; jobs := jobs || (1 << priority); dues := array_append(dues, due); rooms := rooms || false; terms := terms || false;
    end loop;
    execute {{tenant_queue_due.sql}} into woken, last
        using of_queue, coalesce(wakes_from, '-infinity'), now_at, sluice._behind(low_water), {{max moved}};
    wakes_from := now_at;
    if woken = {{max moved}} and last < now_at then
        wakes_from := last;
    end if;
    more := changes = {{max tenant changes}} or adopted = {{max moved}} or woken = {{max moved}};
    if tenants <> '{}' then
        select array_agg(n.of_tenant), array_agg(n.of_jobs), array_agg(n.of_due), array_agg(n.of_room), array_agg(n.of_terms)
        into tenants, jobs, dues, rooms, terms
        from (select g.t as of_tenant, bit_or(g.j) as of_jobs, min(g.d) as of_due, bool_or(g.r) as of_room, bool_or(g.c) as of_terms
              from unnest(tenants, jobs, dues, rooms, terms) as g(t, j, d, r, c) group by g.t) n;
        execute {{tenant_queue_wake.sql}} using of_queue, tenants, jobs, dues, rooms, terms, now_at, sluice._behind(low_water);
    end if;
end
$function$;
