-- Refuses null for a boolean argument: a caller that lost a value meant neither true nor false.
create or replace function sluice._check_said(argument text, value boolean) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if value is null then
        perform sluice._invalid(argument, 'it is null; say true or false');
    end if;
end
$function$;
