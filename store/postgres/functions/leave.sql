-- worker: Records that a process ends.
create or replace function sluice.leave(
    holder text
) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    if coalesce(holder, '') = '' then
        perform sluice._invalid('holder', 'it is missing');
    end if;
    perform sluice._check_holder(holder);
    execute {{leave.sql}} using holder;
end
$function$;
