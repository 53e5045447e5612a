-- Refuses an array argument with a value per job that is not as long as the list of jobs. Null is allowed.
create or replace function sluice._check_each(argument text, length integer, most integer) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if length <> most then
        perform sluice._invalid(argument, format('%s for %s ids; each id needs one', length, most));
    end if;
end
$function$;
