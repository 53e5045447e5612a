-- Returns the effective limits of tenants in a queue, in the given order. Each number comes from the nearest limit that
-- sets it. Jobs without a tenant have no limits of a tenant.
create or replace function sluice._terms(of_queue text, tenants text[], of_concurrency bigint, of_rate double precision, of_per bigint, of_burst bigint, now_at timestamptz)
returns table (tenant text, concurrency bigint, rate double precision, per_ms bigint, burst bigint, weight bigint, until timestamptz,
    paused boolean, paused_until timestamptz, changed timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    said_of text[] := '{}'; concurrencies bigint[] := '{}'; rates double precision[] := '{}'; pers bigint[] := '{}'; bursts bigint[] := '{}'; weights bigint[] := '{}';
    untils timestamptz[] := '{}'; pauses boolean[] := '{}'; pause_ends timestamptz[] := '{}'; changes timestamptz[] := '{}';
    n integer := 0;
    a_queue text; a_tier text; a_tenant text; a_version bigint; a_changer text; a_reason text;
    counts boolean;
begin
    for tenant, a_queue, a_tier, a_tenant, concurrency, rate, per_ms, burst, weight, until, paused, paused_until, a_version, changed, a_changer, a_reason
        in execute {{tenant_queue_limits.sql}} using of_queue, tenants
    loop
        n := n + 1;
        said_of[n] := tenant; concurrencies[n] := concurrency; rates[n] := rate; pers[n] := per_ms; bursts[n] := burst; weights[n] := weight;
        untils[n] := until; pauses[n] := paused; pause_ends[n] := paused_until; changes[n] := changed;
    end loop;
    foreach tenant in array tenants loop
        concurrency := null; rate := null; per_ms := null; burst := null; weight := null; until := null;
        paused := false; paused_until := null; changed := null;
        for i in 1..n loop
            continue when said_of[i] <> tenant;
            changed := greatest(changed, changes[i]);
            if pauses[i] and (pause_ends[i] is null or pause_ends[i] > now_at) then
                paused_until := case when not paused then pause_ends[i]
                    when paused_until is null or pause_ends[i] is null then null
                    else greatest(paused_until, pause_ends[i]) end;
                paused := true;
            end if;
            counts := untils[i] is null or untils[i] > now_at;
            if counts and tenant <> '' then
                until := least(until, untils[i]);
                concurrency := coalesce(concurrency, concurrencies[i]);
                per_ms := case when rate is null and rates[i] is not null then coalesce(pers[i], 1000) else per_ms end;
                rate := coalesce(rate, rates[i]);
                burst := coalesce(burst, bursts[i]);
                weight := coalesce(weight, weights[i]);
            end if;
        end loop;
        weight := coalesce(weight, 1);
        concurrency := coalesce(concurrency, case when tenant <> '' then of_concurrency end, 0);
        per_ms := coalesce(per_ms, case when tenant <> '' then of_per end, 1000);
        rate := coalesce(rate, case when tenant <> '' then of_rate end, 0);
        burst := coalesce(burst, case when tenant <> '' then of_burst end, 0);
        return next;
    end loop;
end
$function$;
