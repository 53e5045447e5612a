-- Cancels waiting jobs of a full queue or a full tenant to make room. The function cancels exactly the number of jobs
-- given, or none if it finds fewer.
create or replace function sluice._shed(of_queue text, of_tenant text, below integer, jobs integer) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    ids uuid[] := '{}';
    id  uuid;
    row record;
begin
    if of_tenant <> '' then
        for id in execute {{shed_tenant.sql}} using of_queue, of_tenant, below, jobs loop
            ids := ids || id;
        end loop;
    elsif exists (select from sluice.live l where l.queue = of_queue and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue) then
        for id in execute {{shed_turns.sql}} using of_queue, below, jobs loop
            ids := ids || id;
        end loop;
    else
        for id in execute {{shed.sql}} using of_queue, below, jobs loop
            ids := ids || id;
        end loop;
    end if;
    if cardinality(ids) < jobs then
        return false;
    end if;
    ids := array(select i from unnest(ids) as i order by i);
    for row in select e.* from sluice._cancel_queued(ids, array_fill('{{shed reason}}'::text, array[jobs]), array_fill('sluice'::text, array[jobs])) e loop
        if row.state = 'let go' then
            perform sluice._notify(row.queue);
        end if;
    end loop;
    return true;
end
$function$;
