-- How many tokens a bucket holds at the most.
create or replace function sluice._burst(rate double precision, burst bigint) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return case when burst > 0 then burst else greatest(1, floor(rate)) end;
end
$function$;
