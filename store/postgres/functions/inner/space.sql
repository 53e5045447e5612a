-- Returns how many jobs the limits of a tenant let a claim take. The caller has filled the tokens up to now.
create or replace function sluice._space(paused boolean, concurrency bigint, held integer, rate double precision, tokens double precision) returns integer
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    room bigint := 1000000;
begin
    if paused then
        return 0;
    end if;
    if concurrency > 0 then
        room := greatest(0, concurrency - held);
    end if;
    if rate > 0 then
        room := least(room, greatest(0, floor(tokens + 1e-9))::bigint);
    end if;
    return room;
end
$function$;
