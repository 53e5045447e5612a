-- Records in sluice.awaited the queues whose jobs must let jobs of a batch go when they end. The call comes before the
-- batch is stored.
create or replace function sluice._note_awaited_batch(items json[], ids uuid[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    others uuid[] := '{}';
    row    record;
    queues text[] := '{}';
begin
    for row in
        select n, items[n] ->> 'queue' as queue, items[n] ->> 'key' as key, items[n] ->> 'order_key' as order_key, items[n] -> 'after' as after
        from generate_subscripts(items, 1) as n
        where json_typeof(items[n]) = 'object' and (items[n] ->> 'order_key' <> '' or json_typeof(items[n] -> 'after') = 'array')
    loop
        if sluice._may('produce', row.queue) then
            if row.order_key <> '' or row.key <> '' then
                queues := queues || row.queue;
            end if;
            if json_typeof(row.after) = 'array' then
                others := others || array(
                    select a::uuid from json_array_elements_text(row.after) as a where a ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$');
            end if;
        end if;
    end loop;
    queues := queues || array(select items[n] ->> 'queue' from generate_subscripts(items, 1) as n where ids[n] = any (others));
    if queues <> '{}' or others <> '{}' then
        execute {{awaited.sql}} using array(select distinct q from unnest(queues) as q where q is not null), array(select distinct o from unnest(others) as o);
    end if;
end
$function$;
