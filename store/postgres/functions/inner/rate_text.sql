-- Returns a rate as people write it, such as `5/1s`.
create or replace function sluice._rate_text(rate double precision, per_ms bigint) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return sluice._window_jobs(rate, per_ms) || '/' || case when per_ms = 1000 and rate >= 1 then 's'
        else extract(epoch from sluice._window_of(rate, per_ms))::real || 's' end;
end
$function$;
