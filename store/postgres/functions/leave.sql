-- worker: Says that a process ends.
create or replace function sluice.leave(
    holder text
) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._check_holder(holder);
    execute {{leave.sql}} using holder;
end
$function$;
