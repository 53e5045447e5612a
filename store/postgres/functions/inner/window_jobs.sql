-- Returns the number of jobs that a rate allows in its window.
create or replace function sluice._window_jobs(rate double precision, per_ms bigint) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return case when rate > 0 then greatest(1, floor(rate * per_ms / 1000 + 1e-6)) else 0 end;
end
$function$;
