-- Returns the order in which a claim serves the priorities: from 1 to 10. A share of the claims begins with another
-- priority; the token decides which claims and which priority.
create or replace function sluice._priorities(token uuid, ageing double precision) returns smallint[]
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    digits text := replace(token::text, '-', '');
    lot    bigint := ('x' || substr(digits, 1, 8))::bit(32)::bigint;
    front  integer := 2 + (('x' || substr(digits, 9, 8))::bit(32)::bigint % 9)::integer;
    plain  constant smallint[] := '{1,2,3,4,5,6,7,8,9,10}';
begin
    if lot >= ageing * 4294967296 then
        return plain;
    end if;
    return front::smallint || array_remove(plain, front::smallint);
end
$function$;
