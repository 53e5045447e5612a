-- Returns the length of a rate's window. A window with less than 1 job is extended until it allows 1 job.
create or replace function sluice._window_of(rate double precision, per_ms bigint) returns interval
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return make_interval(secs => greatest(per_ms / 1000.0, 1 / rate));
end
$function$;
