-- Returns the seconds until a rate has a token; 0: it has a token now, or there is no rate.
create or replace function sluice._token_wait(tokens double precision, filled_at timestamptz, rate double precision, per_ms bigint, burst bigint, now_at timestamptz) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    bucket record;
begin
    if rate <= 0 then
        return 0;
    end if;
    select * into bucket from sluice._filled(tokens, filled_at, rate, sluice._burst(rate, per_ms, burst), now_at);
    return case when floor(bucket.filled + 1e-9) > 0 then 0 else greatest(0, 1 - bucket.filled) / rate end;
end
$function$;
