-- How many tokens the bucket of a queue holds: a fiftieth of a window's jobs, or what a tenth of a second gives, if that is more;
-- and the burst, if that is more. It is twice what a claim waits for, so that one that comes late loses nothing.
create or replace function sluice._queue_burst(rate double precision, per_ms bigint, burst bigint) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    jobs double precision := sluice._window_jobs(rate, per_ms);
begin
    return greatest(least(greatest(1, floor(greatest(jobs / 50, rate / 10))), jobs), burst);
end
$function$;
