-- Claims from a queue with limits, one claim at a time. The function counts the jobs in flight after it got the lock,
-- so that no other claim can add to them. A queue without limits gives no row at all.
create or replace function sluice._claim_limited(of_queue text, most integer, by_holder text, with_token uuid, lease interval, in_order smallint[], look_only boolean)
returns table ({{columns}}, wait double precision, limited boolean, is_full boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    fronts  constant timestamptz[] := array_fill('-infinity'::timestamptz, array[10]);
    zeroes  constant uuid[] := array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[10]);
    straggle constant interval := interval '1 minute';
    g       record;
    paused boolean; rate double precision; rate_per bigint; burst bigint; concurrency bigint; version bigint;
    tokens double precision; filled_at timestamptz; stored timestamptz; counted_from timestamptz; counted_version bigint; counted_since timestamptz;
    now_at timestamptz; tenant_concurrency bigint; tenant_rate double precision; tenant_per bigint; tenant_burst bigint; by_tenant boolean;
    low_water double precision; low_water_tenant text; wakes_from timestamptz; fair_since timestamptz; changed timestamptz; permits_from timestamptz; clock_ahead bigint;
    at      timestamptz;
    is_new  boolean;
    orphans uuid[] := '{}';
    before  record;
    bucket  record;
    in_flight bigint := 0;
    first   timestamptz;
    room    integer := most;
    room_wait double precision := 0;
    in_window record;
    free    double precision;
    full_up boolean := false;
    set_back boolean := false;
    by_engine text;
    limits  text;
    shared  record;
    k       record;
    keys    text[] := '{}';
    costs   integer[] := '{}';
    parked  integer := 0;
    asked   integer;
    chosen uuid[]; has_key boolean[]; an_id uuid; a_key boolean; told bigint;
    next_lane timestamptz;
    lane_wait double precision;
    got     integer := 0;
    more    boolean := false;
    due     double precision;
    dissolved uuid;
    row     record;
begin
    execute {{flow_lock.sql}} into paused, rate, rate_per, burst, concurrency, version, tokens, filled_at, stored, counted_from, counted_version,
        counted_since, now_at, tenant_concurrency, tenant_rate, tenant_per, tenant_burst, by_tenant, low_water, low_water_tenant, wakes_from, fair_since, changed, by_engine, permits_from, clock_ahead, limits
        using of_queue;
    is_full := false;
    if now_at is null then -- another claim has the lock
        wait := 0.01;
        limited := true;
        return next;
        return;
    end if;
    if not by_tenant and not look_only then
        for dissolved in execute {{tenant_queue_dissolve.sql}} using of_queue, {{max moved}} loop
            null; -- the function needs the statement's effect, not its rows
        end loop;
    end if;
    if not by_tenant and rate <= 0 and concurrency <= 0 and limits = '' then
        return;
    end if;
    if not look_only and current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        perform sluice._invalid('queues', format('queue %s has limits, and a transaction that is %s counts the jobs in flight as of its begin; claim in one that is read committed',
            of_queue, current_setting('transaction_isolation')));
    end if;
    limited := false;
    if paused then
        return next;
        return;
    end if;
    at := greatest(now_at, stored + interval '1 microsecond'); -- later than every earlier claim, even if the clock was set back
    is_new := counted_version <> version;
    if is_new then
        counted_from := null;
        counted_version := version;
        counted_since := at;
    end if;
    if not by_tenant then
        fair_since := null;
    end if;
    select low_water as virtual_start, low_water_tenant as tenant, wakes_from as wakes, fair_since as since, counted_from as counted into before;
    select * into bucket from sluice._filled(tokens, filled_at, rate, sluice._queue_burst(rate, rate_per, burst), now_at);
    if concurrency > 0 then
        execute {{in_flight.sql}} into in_flight, first using of_queue, concurrency, counted_from;
        if at - counted_since > straggle then
            counted_from := coalesce(first, at);
        end if;
    end if;
    if rate > 0 then
        if filled_at > now_at + interval '1 second' then -- the clock was set back, so recorded starts lie in the future
            execute {{started_forget.sql}} using of_queue, '-infinity'::timestamptz, now_at;
            execute {{started_add.sql}} using of_queue, now_at, sluice._window_jobs(rate, rate_per)::bigint + burst;
            tokens := bucket.filled;
            filled_at := bucket.at;
            set_back := true;
        end if;
        select * into in_window from sluice._window_wait(of_queue, 1, sluice._window_jobs(rate, rate_per) + burst, sluice._window_of(rate, rate_per), permits_from, now_at);
        free := greatest(least(floor(bucket.filled + 1e-9), in_window.free), 0);
        if free < room then
            room := free;
            room_wait := greatest(sluice._until_useful(bucket.filled - room, rate, sluice._queue_burst(rate, rate_per, burst)), in_window.wait);
        end if;
    end if;
    if concurrency > 0 and concurrency - in_flight <= room then
        room := greatest(concurrency - in_flight, 0);
        full_up := true;
    end if;
    if limits <> '' then
        begin
            select * into shared from sluice._shared_room(limits, most);
        exception when lock_not_available then
            wait := 1;
            limited := true;
            return next;
            return;
        end;
        now_at := greatest(now_at, clock_timestamp()); -- the claim may have waited for the locks of the limits
        at := greatest(at, now_at);
        if shared.room < room then
            room := shared.room;
            room_wait := shared.wait;
            full_up := shared.is_full;
        elsif shared.room = room then
            room_wait := greatest(room_wait, shared.wait);
            full_up := full_up or shared.is_full;
        end if;
    end if;
    if limits <> '' then
        select * into k from sluice._keyed_limits(limits);
        if k.names is not null and room > 0 and not look_only then
            execute {{limit_told.sql}} into told using k.names, {{max told}};
            perform sluice._admit_keyed(of_queue, k.names, k.concurrencies, k.rates, k.bursts, k.per_keys, k.by_costs, now_at, '{}', '{}', least(most, k.most));
        end if;
    else
        select null::text[] as names, null::integer[] as concurrencies, null::double precision[] as rates, null::double precision[] as bursts,
            null::boolean[] as per_keys, null::boolean[] as by_costs, 0 as most into k;
    end if;
    if look_only and room > 0 and not by_tenant and false = any (k.per_keys) then -- does the next job fit?
        chosen := '{}';
        has_key := '{}';
        for an_id, a_key in execute {{limit_pick.sql}} using of_queue, in_order, fronts, zeroes, 1, interval '0', '' loop
            chosen := chosen || an_id;
            has_key := has_key || a_key;
        end loop;
        select a.stopped, a.wait into shared
        from sluice._admit_keyed(of_queue, k.names, k.concurrencies, k.rates, k.bursts, k.per_keys, k.by_costs, now_at, chosen, has_key, 0) a;
        if shared.stopped then
            room := 0;
            room_wait := coalesce(shared.wait, 0);
            full_up := shared.wait is null;
        end if;
    end if;
    if not look_only and by_tenant then
        for row in select s.* from sluice._serve(of_queue, room, by_holder, with_token, lease, in_order, now_at, at, stored, changed,
            tenant_concurrency, tenant_rate, tenant_per, tenant_burst, low_water, low_water_tenant, wakes_from, coalesce(fair_since, at),
            k.names, k.concurrencies, k.rates, k.bursts, k.per_keys, k.by_costs) s
        loop
            if row.id is null then
                low_water := row.low_water;
                low_water_tenant := row.low_water_tenant;
                wakes_from := row.wakes_from;
                fair_since := coalesce(fair_since, at);
                more := row.more;
                continue;
            end if;
            got := got + 1;
            select {{row columns}} into {{column names}};
            return next;
        end loop;
    elsif not look_only and room > 0 and k.names is not null then
        asked := room;
        while got < room and parked < {{max moved}} loop
            chosen := '{}';
            has_key := '{}';
            for an_id, a_key in execute {{limit_pick.sql}} using of_queue, in_order, fronts, zeroes, asked, interval '0', '' loop
                chosen := chosen || an_id;
                has_key := has_key || a_key;
            end loop;
            more := cardinality(chosen) = asked;
            select a.fit, a.parked, a.stopped, a.wait into shared
            from sluice._admit_keyed(of_queue, k.names, k.concurrencies, k.rates, k.bursts, k.per_keys, k.by_costs, now_at, chosen, has_key, 0) a;
            parked := parked + shared.parked;
            for {{column names}} in execute {{limit_claim.sql}} || ' order by c.priority, c.due_at, c.id'
                using of_queue, shared.fit[:room - got], with_token, by_holder, lease, at, '{}'::text[]
            loop
                if created_at is null then
                    orphans := orphans || id;
                    continue;
                end if;
                got := got + 1;
                keys := keys || limit_key;
                costs := costs || cost;
                return next;
            end loop;
            perform sluice._take_keyed(k.names, k.rates, k.bursts, k.per_keys, k.by_costs, keys, costs, now_at); -- before others are judged
            keys := '{}';
            costs := '{}';
            if shared.stopped then
                room := got;
                room_wait := coalesce(shared.wait, 0);
                full_up := shared.wait is null;
            end if;
            exit when not more or shared.parked = 0 or shared.stopped;
            asked := greatest(room - got, {{picked again}});
        end loop;
        more := parked >= {{max moved}};
        perform sluice._drop_orphans(orphans, with_token, by_holder);
    elsif not look_only and room > 0 then
        for {{column names}} in execute {{claim.sql}} || ' order by c.priority, c.due_at, c.id'
            using of_queue, in_order, fronts, zeroes, room, with_token, by_holder, lease, true, at, interval '0', ''
        loop
            if created_at is null then
                orphans := orphans || id;
                continue;
            end if;
            got := got + 1;
            return next;
        end loop;
        perform sluice._drop_orphans(orphans, with_token, by_holder);
    end if;
    if rate > 0 and got > 0 then
        tokens := bucket.filled - got;
        filled_at := bucket.at;
        execute {{started_add.sql}} using of_queue, now_at, got::bigint; -- a caller of functions begins its jobs at once, or hands them back
    end if;
    if limits <> '' and got > 0 then
        perform sluice._shared_take(limits, got);
    end if;
    if k.names is not null and got < most then
        execute {{limit_lane_next.sql}} into next_lane using of_queue, k.names;
        lane_wait := case when next_lane is null then null when more or not isfinite(next_lane) then 0
                          else greatest(extract(epoch from next_lane - now_at), 0) end;
    end if;
    if set_back or low_water <> before.virtual_start or low_water_tenant <> before.tenant or fair_since is distinct from before.since
        or coalesce(wakes_from < before.wakes, false)
        or got > 0 and (rate > 0 or is_new or stored is null or at - stored >= interval '1 second'
            or (counted_from is null) <> (before.counted is null) or coalesce(counted_from - before.counted >= interval '1 second', false)) then
        execute {{flow_take.sql}} using of_queue, tokens, filled_at, at, counted_from, counted_version, counted_since,
            low_water, low_water_tenant, wakes_from, fair_since, permits_from, clock_ahead;
    end if;
    id := null;
    if got > 0 then
        limited := got = room and room < most;
        is_full := limited and full_up;
        if limited and not full_up then
            wait := room_wait;
        end if;
        if by_tenant and not limited and got < most then
            is_full := true;
            wait := sluice._next_due(of_queue, in_order, true, low_water, low_water_tenant, wakes_from, more);
        end if;
        if lane_wait is not null and not limited then
            is_full := true;
            wait := least(wait, lane_wait);
        end if;
        return next;
        return;
    end if;
    if look_only and by_tenant and exists (select from sluice.tenant_change h where h.queue = of_queue) then
        more := true;
    end if;
    due := least(sluice._next_due(of_queue, in_order, by_tenant, low_water, low_water_tenant, wakes_from, more), lane_wait);
    wait := due;
    if room = 0 and due is not null then
        limited := due = 0;
        is_full := limited and full_up;
        wait := case when not is_full then greatest(due, room_wait) end;
    end if;
    if (by_tenant or lane_wait is not null) and not limited then
        is_full := true;
    end if;
    return next;
end
$function$;
