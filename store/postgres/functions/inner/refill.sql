-- Returns the tokens per second of the bucket of a tenant or a limit key. Only the bucket bounds these claims. So the bucket
-- fills more slowly, by its size: then no window sees more claims than the rate and the burst allow.
create or replace function sluice._refill(rate double precision, per_ms bigint, burst bigint) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    jobs double precision := sluice._window_jobs(rate, per_ms);
begin
    if rate <= 0 then
        return 0;
    end if;
    return least(jobs, jobs + burst - sluice._burst(rate, per_ms, burst) + 1) / extract(epoch from sluice._window_of(rate, per_ms));
end
$function$;
