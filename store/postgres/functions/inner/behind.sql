-- Returns a virtual start just after the low-water mark. After 2^32 starts, rounding would lose the fixed step; the
-- step is then about the smallest that the type can represent.
create or replace function sluice._behind(virtual_start double precision) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return greatest(virtual_start + 1.0 / 1048576, virtual_start + abs(virtual_start) * 2.3e-16);
end
$function$;
