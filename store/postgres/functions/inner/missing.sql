-- Returns the error text for a job whose `after` names a job that is not stored.
create or replace function sluice._missing(other uuid) returns text
language plpgsql immutable strict set search_path = pg_catalog, pg_temp as $function$
begin
    return format('job %s, which it is to run after, is not known', other);
end
$function$;
