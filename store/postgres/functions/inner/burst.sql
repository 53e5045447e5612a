-- How many tokens the bucket of a tenant holds at the most: a hundredth of a window's jobs, or what a twentieth of a second gives, if that is
-- more; and the burst, if that is more.
create or replace function sluice._burst(rate double precision, per_ms bigint, burst bigint) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    jobs double precision := sluice._window_jobs(rate, per_ms);
begin
    return greatest(least(greatest(1, floor(greatest(jobs / 100, rate / 20))), jobs), burst);
end
$function$;
