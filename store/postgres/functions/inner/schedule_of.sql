-- Locks a schedule and returns it. A schedule in a queue in which the caller may not operate counts as unknown.
create or replace function sluice._schedule_of(of_name text) returns sluice.schedule
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    found_one sluice.schedule;
begin
    if of_name is null then
        perform sluice._invalid('name', 'it is null; say which schedule');
    end if;
    select s.* into found_one from sluice.schedule s where s.name = of_name for update;
    if not found or not sluice._may('operate', found_one.queue) then
        raise exception using errcode = 'SL005', message = format('there is no schedule %L in a queue in which role %I may operate', left(of_name, 80), sluice._caller()),
            hint = 'select name, queue from sluice.list_schedules() lists those that there are.';
    end if;
    return found_one;
end
$function$;
