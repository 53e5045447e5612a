-- Says why a job is refused that would change a job of another tenant, which holds its key.
create or replace function sluice._key_of_other(key text, on_duplicate text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $function$
    select format('key: a job of another tenant holds "%s", and %s would change it', left(key, 80), on_duplicate)
$function$;
