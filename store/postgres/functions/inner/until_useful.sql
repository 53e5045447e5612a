-- Returns the seconds until a claim is worthwhile: until the bucket has the tokens of 50 ms, but at least 1 and at most
-- the burst.
create or replace function sluice._until_useful(tokens double precision, rate double precision, burst double precision) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return greatest(0, greatest(1, least(burst, floor(rate / 20))) - tokens) / rate;
end
$function$;
