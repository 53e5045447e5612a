-- Records in sluice.awaited the queues whose jobs must let new jobs go when they end. The call comes before the new
-- jobs are stored.
create or replace function sluice._note_awaited(queues text[], order_keys text[], keys text[], behind boolean[], after uuid[], named text[])
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    noted text[] := array(
        select q from unnest(queues, order_keys, keys, behind) as g(q, o, k, b)
        where coalesce(o, '') <> '' or coalesce(k, '') <> '' and coalesce(b, false)
        union
        select unnest(named));
begin
    if noted <> '{}' or coalesce(after, '{}') <> '{}' then
        execute {{awaited.sql}} using noted, coalesce(after, '{}');
    end if;
end
$function$;
