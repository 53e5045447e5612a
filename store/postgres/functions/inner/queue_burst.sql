-- Returns the most tokens that a queue's bucket holds: 1/50 of the window's jobs or the tokens of 100 ms, whichever is
-- more, but not more than all jobs of the window. A larger burst setting replaces this number. The bucket holds twice
-- the tokens that a claim waits for, so that a late claim loses none.
create or replace function sluice._queue_burst(rate double precision, per_ms bigint, burst bigint) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    jobs double precision := sluice._window_jobs(rate, per_ms);
begin
    return greatest(least(greatest(1, floor(greatest(jobs / 50, rate / 10))), jobs), burst);
end
$function$;
