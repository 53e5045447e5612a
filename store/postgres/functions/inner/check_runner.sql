-- Refuses workers in a queue whose jobs run at an engine.
create or replace function sluice._check_runner(of_queue text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    engine text := (select q.engine from sluice.queue q where q.name = of_queue);
begin
    if engine <> '' then
        raise exception using errcode = 'SL007', message = format('queue %s is not for workers: the engine %s runs its jobs', of_queue, engine),
            hint = format('Run `sluice dispatch %s`, or clear the setting engine.', of_queue);
    end if;
end
$function$;
