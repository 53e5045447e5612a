-- Lets limits per key and limits by cost decide about jobs that a claim has found and locked. Fit lists the admitted
-- jobs in their order, and parked counts the jobs that the function parked. Stopped says that a limit by cost has no
-- room for the next job. Wait is the seconds until the limit has room; null: until a job ends. If heads is above 0, the
-- function looks at parked jobs too.
create or replace function sluice._admit_keyed(of_queue text, names text[], concurrencies integer[], rates double precision[], bursts double precision[],
    per_keys boolean[], by_costs boolean[], now_at timestamptz, given uuid[], has_key boolean[], heads integer,
    out fit uuid[], out parked integer, out stopped boolean, out wait double precision)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    unfit      uuid[] := '{}';
    every      boolean := false = any (per_keys);
    stop       uuid;
    of_id      uuid;
    fits       boolean;
    was_parked boolean;
    passes     boolean;
    its_wait   double precision;
begin
    fit := given;
    parked := 0;
    stopped := false;
    if heads = 0 and not every and not (true = any (has_key)) then
        return;
    end if;
    for of_id, fits, was_parked, passes, its_wait in execute {{limit_judge.sql}}
        using of_queue, names, concurrencies, rates, bursts, now_at, array(select f from unnest(given, has_key) with ordinality as g(f, h, n) where h or every order by n),
            heads, {{lanes woken}}, per_keys, by_costs, interval '0'
    loop
        if not fits and not was_parked then
            unfit := unfit || of_id;
        elsif not passes and not stopped then
            stopped := true;
            stop := of_id;
            wait := its_wait;
        end if;
    end loop;
    parked := cardinality(unfit);
    if parked > 0 or stopped then
        fit := array(select f from unnest(given) with ordinality as g(f, n)
                     where not f = any (unfit) and n < coalesce(array_position(given, stop), cardinality(given) + 1) order by n);
    end if;
end
$function$;
