-- Claims up to room jobs from the tenant queues of a queue, and shares them among the tenants by turns, like the Go
-- package flow. The caller holds the lock of the queue's row in flow. The last row has no id: it returns the state of
-- the turns.
create or replace function sluice._serve(of_queue text, room integer, by_holder text, with_token uuid, lease interval, in_order smallint[],
    now_at timestamptz, claim_at timestamptz, stored timestamptz, settings_changed timestamptz, of_concurrency bigint, of_rate double precision, of_per bigint, of_burst bigint,
    given_start double precision, given_tenant text, given_wakes timestamptz, fair_since timestamptz,
    keyed text[], keyed_concurrencies integer[], keyed_rates double precision[], keyed_bursts double precision[],
    keyed_per_keys boolean[], keyed_by_costs boolean[])
returns table ({{columns}}, low_water double precision, low_water_tenant text, wakes_from timestamptz, more boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    straggle constant interval := interval '1 minute';
    -- the present tenant queues, with an array for each column
    place tid[]; of_tenant text[]; virtual_start double precision[]; jobs integer[]; tokens double precision[]; filled timestamptz[]; counted timestamptz[];
    concurrency bigint[]; rate double precision[]; burst double precision[]; weight bigint[]; until timestamptz[]; paused boolean[]; paused_until timestamptz[];
    limits_changed timestamptz[]; held integer[]; outside boolean[]; active boolean[]; full_up boolean[]; wake_at timestamptz[]; due timestamptz[];
    share integer[]; got integer[]; space integer[]; share_start double precision[]; in_it boolean[];
    l_place tid; l_tenant text; l_virtual_start double precision; l_jobs integer; l_tokens double precision; l_filled timestamptz; l_counted timestamptz; l_outside boolean;
    row     record;
    n       integer;
    most    integer;
    looked  integer;
    left_over integer;
    best    integer;
    served  integer[];
    few    integer[];
    waits   integer[];
    fronts  timestamptz[];
    zeroes  uuid[];
    claimed integer := 0;
    orphans uuid[] := '{}';
    chosen  uuid[]; has_key boolean[]; an_id uuid; a_key boolean; stopped boolean := false;
    keys    text[] := '{}';
    costs   integer[] := '{}';
    near    text[];
    no      integer;
    which   integer;
    at_due  timestamptz;
begin
    low_water := given_start;
    low_water_tenant := given_tenant;
    select f.wakes_from, f.more into wakes_from, more from sluice._fill_tenant_queues(of_queue, now_at, low_water, given_wakes) f;
    for look in 0..{{max looks}} - 1 loop
        exit when claimed >= room;
        most := case when look = 0 then least(room, {{max tenant queues}}, greatest({{first tenant queues}}, room / {{jobs a tenant queue}})) else {{max tenant queues}} end;
        n := 0;
        place := '{}'; of_tenant := '{}'; virtual_start := '{}'; jobs := '{}'; tokens := '{}'; filled := '{}'; counted := '{}';
        for l_place, l_tenant, l_virtual_start, l_jobs, l_tokens, l_filled, l_counted in execute {{tenant_queue_first.sql}}
            using of_queue, low_water, low_water_tenant, most
        loop
            n := n + 1;
            place[n] := l_place; of_tenant[n] := l_tenant; virtual_start[n] := l_virtual_start; jobs[n] := l_jobs; tokens[n] := l_tokens; filled[n] := l_filled; counted[n] := l_counted;
        end loop;
        exit when n = 0;
        -- the limits of the tenants, and their jobs in flight
        concurrency := '{}'; rate := '{}'; burst := '{}'; weight := '{}'; until := '{}'; paused := '{}'; paused_until := '{}'; limits_changed := '{}';
        no := 0;
        for row in select t.* from sluice._terms(of_queue, of_tenant, of_concurrency, of_rate, of_per, of_burst, now_at) t loop
            no := no + 1;
            concurrency[no] := row.concurrency; rate[no] := sluice._refill(row.rate, row.per_ms, row.burst);
            burst[no] := case when row.rate > 0 then sluice._burst(row.rate, row.per_ms, row.burst) end;
            weight[no] := row.weight; until[no] := row.until; paused[no] := row.paused; paused_until[no] := row.paused_until; limits_changed[no] := row.changed;
        end loop;
        held := array_fill(0, array[n]); outside := array_fill(false, array[n]);
        for l_tenant, l_jobs, at_due, l_outside in execute {{tenant_queue_held.sql}}
            using of_queue, array(select t from unnest(of_tenant, concurrency) as g(t, c) where c > 0),
                array(select c::integer from unnest(concurrency) as c where c > 0),
                array(select f from unnest(counted, concurrency) as g(f, c) where c > 0)
        loop
            no := array_position(of_tenant, l_tenant);
            held[no] := l_jobs; outside[no] := l_outside;
            if claim_at - greatest(fair_since, settings_changed, limits_changed[no]) > straggle then
                counted[no] := case when at_due < stored then at_due else stored end;
            end if;
        end loop;
        -- shares, in the order of turns
        share := array_fill(0, array[n]); got := share; due := array_fill(null::timestamptz, array[n]); in_it := array_fill(false, array[n]);
        active := array_fill(true, array[n]); full_up := in_it; wake_at := due; space := share; share_start := virtual_start;
        for i in 1..n loop
            if rate[i] > 0 then
                select f.filled, f.at into l_tokens, l_filled from sluice._filled(tokens[i], filled[i], rate[i], burst[i], now_at) f;
                tokens[i] := l_tokens; filled[i] := l_filled;
            end if;
            space[i] := sluice._space(paused[i], concurrency[i], held[i], rate[i], tokens[i]);
        end loop;
        left_over := room - claimed;
        looked := 0;
        best := null;
        while left_over > 0 loop
            best := null;
            for i in 1..looked loop
                if in_it[i] and (best is null or share_start[i] < share_start[best]
                    or share_start[i] = share_start[best] and of_tenant[i] collate "C" < of_tenant[best] collate "C") then
                    best := i;
                end if;
            end loop;
            if looked < n and (best is null or virtual_start[looked + 1] <= share_start[best]) then
                looked := looked + 1;
                in_it[looked] := space[looked] > 0;
                continue;
            end if;
            exit when best is null;
            share[best] := share[best] + 1;
            left_over := left_over - 1;
            share_start[best] := share_start[best] + 1.0 / weight[best];
            in_it[best] := share[best] < space[best];
        end loop;
        served := array(select i from generate_series(1, looked) as i where share[i] > 0 or space[i] = 0 order by i);
        -- claim, and look again at tenant queues that gave few jobs: a tenant queue without due jobs must not stand before the others
        few := array(select i from unnest(served) as i where share[i] > 0 order by i);
        if few <> '{}' and not stopped then -- nothing overtakes a job that a limit by cost keeps out
            fronts := array_fill('-infinity'::timestamptz, array[10 * cardinality(few)]);
            zeroes := array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[10 * cardinality(few)]);
            near := array(select of_tenant[i] from unnest(few) as i where concurrency[i] > 0 and 2 * (held[i] + share[i]) >= concurrency[i] order by i);
            if keyed is not null then -- limits per key admit some of the found jobs
                chosen := '{}';
                has_key := '{}';
                for an_id, a_key in execute {{limit_pick_tenants.sql}}
                    using of_queue, array(select of_tenant[i] from unnest(few) as i order by i), array(select share[i] from unnest(few) as i order by i),
                        array(select jobs[i] from unnest(few) as i order by i), fronts, zeroes, in_order, interval '0'
                loop
                    chosen := chosen || an_id;
                    has_key := has_key || a_key;
                end loop;
                select a.fit, a.stopped into chosen, stopped
                from sluice._admit_keyed(of_queue, keyed, keyed_concurrencies, keyed_rates, keyed_bursts, keyed_per_keys, keyed_by_costs, now_at, chosen, has_key, 0) a;
                for {{column names}} in execute {{limit_claim.sql}} using of_queue, chosen, with_token, by_holder, lease, claim_at, near loop
                    if created_at is null then
                        orphans := orphans || id;
                        continue;
                    end if;
                    no := array_position(of_tenant, tenant);
                    got[no] := got[no] + 1;
                    claimed := claimed + 1;
                    keys := keys || limit_key;
                    costs := costs || cost;
                    return next;
                end loop;
                perform sluice._take_keyed(keyed, keyed_rates, keyed_bursts, keyed_per_keys, keyed_by_costs, keys, costs, now_at); -- before others are judged
                keys := '{}';
                costs := '{}';
            else
                for {{column names}} in execute {{tenant_queue_claim.sql}}
                    using of_queue, array(select of_tenant[i] from unnest(few) as i order by i), array(select share[i] from unnest(few) as i order by i),
                        array(select jobs[i] from unnest(few) as i order by i), fronts, zeroes, in_order, with_token, by_holder, lease, claim_at, interval '0',
                        near
                loop
                    if created_at is null then
                        orphans := orphans || id;
                        continue;
                    end if;
                    no := array_position(of_tenant, tenant);
                    got[no] := got[no] + 1;
                    claimed := claimed + 1;
                    return next;
                end loop;
            end if;
            perform sluice._drop_orphans(orphans, with_token, by_holder);
            orphans := '{}';
            few := array(select i from unnest(few) as i
                where not (got[i] = share[i] and (share[i] >= {{plenty}} or space[i] <= got[i])) order by i);
        end if;
        if few <> '{}' then
            waits := array(select jobs[i] from unnest(few) as i order by i);
            foreach no in array few loop
                jobs[no] := 0;
            end loop;
            for which, l_jobs, at_due in execute {{tenant_queue_look.sql}}
                using of_queue, array(select of_tenant[i] from unnest(few) as i order by i), waits, fronts, zeroes
            loop
                no := few[which];
                jobs[no] := jobs[no] | (1 << l_jobs);
                due[no] := least(due[no], at_due);
            end loop;
        end if;
        -- the low-water mark: the first tenant queue that was not served, or the last of this look
        no := (select min(i) from generate_series(1, n) as i where not i = any (served));
        low_water := virtual_start[coalesce(no, n)];
        low_water_tenant := of_tenant[coalesce(no, n)];
        foreach no in array served loop
            held[no] := held[no] + got[no];
            virtual_start[no] := virtual_start[no] + got[no]::double precision / weight[no];
            if rate[no] > 0 then
                tokens[no] := tokens[no] - got[no];
            end if;
            if virtual_start[no] < low_water or virtual_start[no] = low_water and of_tenant[no] collate "C" < low_water_tenant collate "C" then
                virtual_start[no] := sluice._behind(low_water);
            end if;
            if paused[no] then
                active[no] := false; wake_at[no] := paused_until[no];
            elsif concurrency[no] > 0 and held[no] >= concurrency[no] then
                active[no] := false; full_up[no] := true;
                wake_at[no] := case when outside[no] then now_at + interval '1 second' else until[no] end;
            elsif sluice._space(paused[no], concurrency[no], held[no], rate[no], tokens[no]) = 0 then
                active[no] := false;
                wake_at[no] := least(now_at + make_interval(secs => sluice._until_useful(tokens[no], rate[no], burst[no])), until[no]);
            elsif jobs[no] = 0 then
                active[no] := false;
            elsif due[no] > now_at then
                active[no] := false; wake_at[no] := due[no];
            elsif got[no] < share[no] then
                active[no] := false; wake_at[no] := now_at + interval '10 milliseconds';
            end if;
        end loop;
        if n < most then
            best := (select i from generate_series(1, n) as i where active[i] order by virtual_start[i], of_tenant[i] collate "C" limit 1);
            if best is null then
                best := (select i from generate_series(1, n) as i order by virtual_start[i] desc, of_tenant[i] collate "C" desc limit 1);
            end if;
            if virtual_start[best] > low_water or virtual_start[best] = low_water and of_tenant[best] collate "C" >= low_water_tenant collate "C" then
                low_water := virtual_start[best];
                low_water_tenant := of_tenant[best];
            end if;
        end if;
        if served <> '{}' then
            execute {{tenant_queue_keep.sql}} using array(select place[i] from unnest(served) as i order by i), array(select virtual_start[i] from unnest(served) as i order by i),
                array(select jobs[i] from unnest(served) as i order by i), array(select active[i] from unnest(served) as i order by i),
                array(select full_up[i] from unnest(served) as i order by i), array(select wake_at[i] from unnest(served) as i order by i),
                array(select tokens[i] from unnest(served) as i order by i), array(select filled[i] from unnest(served) as i order by i),
                array(select counted[i] from unnest(served) as i order by i);
        end if;
        exit when n < most and not exists (select from unnest(served) as i where active[i]);
    end loop;
    id := null;
    return next;
end
$function$;
