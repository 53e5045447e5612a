-- Returns a bucket of tokens as of now. If the clock stands up to 1 s before the last filling, the bucket gets no
-- tokens. If the clock was set back further, filling starts again from now.
create or replace function sluice._filled(tokens double precision, filled_at timestamptz, rate double precision, burst double precision, now timestamptz,
    out filled double precision, out at timestamptz)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    passed double precision;
begin
    at := now;
    if filled_at is null then
        filled := burst;
        return;
    end if;
    passed := extract(epoch from now - filled_at);
    if passed < 0 then
        if passed >= -1 then
            at := filled_at;
        end if;
        passed := 0;
    end if;
    filled := least(burst, tokens + rate * passed);
end
$function$;
