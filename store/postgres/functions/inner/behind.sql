-- A turn right behind the mark. After 2^32 turns the step would be lost by rounding; it is then the least that there is.
create or replace function sluice._behind(turn double precision) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return greatest(turn + 1.0 / 1048576, turn + abs(turn) * 2.3e-16);
end
$function$;
