-- Counts claimed jobs, with their limit keys and costs, against the rates of limits per key and by cost.
create or replace function sluice._take_keyed(names text[], rates double precision[], bursts double precision[], per_keys boolean[], by_costs boolean[],
    keys text[], costs integer[], now_at timestamptz) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    taken record;
begin
    select array_agg(t.name) as names, array_agg(t.rate) as rates, array_agg(t.burst) as bursts, array_agg(t.key) as keys, array_agg(t.units) as units
    into taken
    from (
        select l.name, l.rate, l.burst, case when l.per_key then c.key else '' end as key, sum(case when l.by_cost then coalesce(c.cost, 1) else 1 end)::integer as units
        from unnest(names, rates, bursts, per_keys, by_costs) as l(name, rate, burst, per_key, by_cost)
        cross join unnest(keys, costs) as c(key, cost)
        where l.rate > 0 and not (l.per_key and c.key is null)
        group by 1, 2, 3, 4
    ) t;
    if taken.names is not null then
        execute {{limit_key_take.sql}} using taken.names, taken.rates, taken.bursts, taken.keys, taken.units, now_at;
    end if;
end
$function$;
