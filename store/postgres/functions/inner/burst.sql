-- Returns the most tokens that a tenant's bucket holds: 1/100 of the window's jobs or the tokens of 50 ms, whichever is
-- more, but not more than all jobs of the window. A larger burst setting replaces this number.
create or replace function sluice._burst(rate double precision, per_ms bigint, burst bigint) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    jobs double precision := sluice._window_jobs(rate, per_ms);
begin
    return greatest(least(greatest(1, floor(greatest(jobs / 100, rate / 20))), jobs), burst);
end
$function$;
