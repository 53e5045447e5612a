-- How long the window of a rate is. One that allows less than a job lasts until there is one.
create or replace function sluice._window_of(rate double precision, per_ms bigint) returns interval
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return make_interval(secs => greatest(per_ms / 1000.0, 1 / rate));
end
$function$;
