-- Says which of the limits that a queue shares are per key, with their figures as the statements about limit keys take them, and for
-- how many jobs of a key there is room at the most. Null names: none is.
create or replace function sluice._keyed_limits(limits text, out names text[], out concurrencies integer[], out rates double precision[], out bursts double precision[], out most integer)
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    select array_agg(n.name order by n.name collate "C"), array_agg(n.concurrency::integer order by n.name collate "C"), array_agg(n.rate order by n.name collate "C"),
           array_agg(case when n.rate > 0 then sluice._queue_burst(n.rate, n.rate_per_ms, n.burst) else 0 end order by n.name collate "C"),
           least(min(nullif(n.concurrency, 0)), min(case when n.rate > 0 then sluice._queue_burst(n.rate, n.rate_per_ms, n.burst) end), {{max moved}})::integer
    into names, concurrencies, rates, bursts, most
    from sluice.named_limit n
    where n.name = any (string_to_array(limits, ',')) and n.per_key;
end
$function$;
