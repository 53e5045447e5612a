-- Refuses a queue that has no settings, no unfinished jobs and no dead letters.
create or replace function sluice._check_known_or_dead(of_queue text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if not exists (select from sluice.done d where d.queue = of_queue and d.outcome = 'dead' and d.requeued_at is null) then
        perform sluice._check_known(of_queue);
    end if;
end
$function$;
