-- Counts the waiting jobs of a queue, or of a tenant in it, up to a limit. This is a function of its own, because the
-- planner settings of its statements would cost each call some 20 µs.
create or replace function sluice._waiting(of_queue text, of_tenant text, most integer) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    waiting bigint;
begin
    if of_tenant <> '' then
        execute {{waiting_jobs_tenant.sql}} into waiting using of_queue, of_tenant, most;
    else
        execute {{waiting_jobs.sql}} into waiting using of_queue, most;
    end if;
    return waiting;
end
$function$;
