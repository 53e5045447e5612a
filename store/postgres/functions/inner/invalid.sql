-- Refuses an argument.
create or replace function sluice._invalid(argument text, why text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    raise exception using errcode = 'SL004', message = format('%s: %s', argument, why), hint = 'Correct it and call again; nothing was changed.';
end
$function$;
