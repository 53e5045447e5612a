-- Locks the order keys of a batch in sorted order, so that two batches do not wait for each other.
create or replace function sluice._lock_orders(items json[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    queues text[];
    keys   text[];
begin
    select array_agg(o.queue order by o.queue collate "C", o.key collate "C"), array_agg(o.key order by o.queue collate "C", o.key collate "C")
    into queues, keys
    from (select distinct i ->> 'queue' as queue, i ->> 'order_key' as key from unnest(items) as i
          where json_typeof(i) = 'object' and coalesce(i ->> 'order_key', '') <> '' and i ->> 'queue' is not null) o
    where sluice._may('produce', o.queue);
    if keys is not null then
        execute {{order_lock.sql}} using queues, keys;
    end if;
end
$function$;
