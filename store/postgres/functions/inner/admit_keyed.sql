-- Lets limits per key decide over jobs that a claim has found and locked, and returns those that are in, in the same order, and how many
-- it parked. With heads, it looks at parked jobs too.
create or replace function sluice._admit_keyed(of_queue text, names text[], concurrencies integer[], rates double precision[], bursts double precision[],
    now_at timestamptz, given uuid[], has_key boolean[], heads integer, out fit uuid[], out parked integer)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    unfit      uuid[] := '{}';
    of_id      uuid;
    fits       boolean;
    was_parked boolean;
begin
    fit := given;
    parked := 0;
    if heads = 0 and not (true = any (has_key)) then
        return;
    end if;
    for of_id, fits, was_parked in execute {{limit_judge.sql}}
        using of_queue, names, concurrencies, rates, bursts, now_at, array(select f from unnest(given, has_key) as g(f, h) where h), heads, {{lanes woken}}
    loop
        if not fits and not was_parked then
            unfit := unfit || of_id;
        end if;
    end loop;
    parked := cardinality(unfit);
    if parked > 0 then
        fit := array(select f from unnest(given) with ordinality as g(f, n) where not f = any (unfit) order by n);
    end if;
end
$function$;
