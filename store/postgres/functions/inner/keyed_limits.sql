-- Returns the limits per key and by cost among the limits that a queue shares, as the other statements take them. Most
-- is the largest number of jobs of a key that can have room at once. Null names: the queue shares no such limit.
create or replace function sluice._keyed_limits(limits text, out names text[], out concurrencies integer[], out rates double precision[], out bursts double precision[],
    out per_keys boolean[], out by_costs boolean[], out most integer)
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    select array_agg(n.name order by n.name collate "C"), array_agg(n.concurrency::integer order by n.name collate "C"), array_agg(sluice._refill(n.rate, n.rate_per_ms, n.burst) order by n.name collate "C"),
           array_agg(case when n.rate > 0 then sluice._burst(n.rate, n.rate_per_ms, n.burst) else 0 end order by n.name collate "C"),
           array_agg(n.per_key order by n.name collate "C"), array_agg(n.by_cost order by n.name collate "C"),
           least(min(nullif(n.concurrency, 0)) filter (where n.per_key),
                 min(case when n.rate > 0 then sluice._burst(n.rate, n.rate_per_ms, n.burst) end) filter (where n.per_key), {{max moved}})::integer
    into names, concurrencies, rates, bursts, per_keys, by_costs, most
    from sluice.named_limit n
    where n.name = any (string_to_array(limits, ',')) and (n.per_key or n.by_cost);
end
$function$;
