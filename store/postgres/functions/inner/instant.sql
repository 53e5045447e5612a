-- Returns an instant in UTC for people.
create or replace function sluice._instant(at timestamptz) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
end
$function$;
