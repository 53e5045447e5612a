-- How many seconds it takes until a claim is worth its while: a twentieth of a second's tokens, and at least one.
create or replace function sluice._until_useful(tokens double precision, rate double precision, burst double precision) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return greatest(0, greatest(1, least(burst, floor(rate / 20))) - tokens) / rate;
end
$function$;
