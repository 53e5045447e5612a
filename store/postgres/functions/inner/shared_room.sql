-- Locks the limits that a queue shares. Room is how many jobs the limits let a claim take, and wait is the seconds
-- until they admit more. Is_full says whether a job must end first. A limit that is not stored limits nothing. The
-- process that holds a lock may be frozen, so the function waits 1 s for each.
create or replace function sluice._shared_room(limits text, most integer, out room integer, out wait double precision, out is_full boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as $function$
declare
    names text[] := string_to_array(limits, ',');
    of_name text; closed boolean; closed_until timestamptz; rate double precision; rate_per bigint; burst bigint; concurrency bigint; version bigint;
    tokens double precision; filled_at timestamptz; claimed_at timestamptz; now_at timestamptz; permits_from timestamptz; clock_ahead bigint; per_key boolean; by_cost boolean;
    made      text;
    bucket    record;
    in_window record;
    in_flight bigint;
    own       integer;
    own_wait  double precision;
    own_full  boolean;
begin
    room := most;
    wait := 0;
    is_full := false;
    for made in execute {{named_limit_flow.sql}} using names loop
        null; -- the function needs the statement's effect, not its rows
    end loop;
    for made in execute {{named_limit_lock.sql}} using names loop
        null;
    end loop;
    for of_name, closed, closed_until, rate, rate_per, burst, concurrency, version, tokens, filled_at, claimed_at, now_at, permits_from, clock_ahead, per_key, by_cost
        in execute {{named_limit_read.sql}} using names
    loop
        own := most;
        own_wait := 0;
        own_full := false;
        if per_key or by_cost then -- its rate and concurrency do not count all jobs together
            rate := 0;
            concurrency := 0;
        end if;
        if rate > 0 then
            if filled_at > now_at + interval '1 second' then -- the clock was set back, so recorded starts lie in the future
                execute {{started_forget.sql}} using '@' || of_name, '-infinity'::timestamptz, now_at;
                execute {{started_add.sql}} using '@' || of_name, now_at, sluice._window_jobs(rate, rate_per)::bigint + burst;
                tokens := least(tokens, sluice._queue_burst(rate, rate_per, burst));
                filled_at := now_at;
                execute {{flow_take.sql}} using '@' || of_name, tokens, filled_at, greatest(now_at, claimed_at + interval '1 microsecond'), null::timestamptz,
                    version, now_at, 0::double precision, '', null::timestamptz, null::timestamptz, permits_from, clock_ahead;
            end if;
            select * into bucket from sluice._filled(tokens, filled_at, rate, sluice._queue_burst(rate, rate_per, burst), now_at);
            select * into in_window from sluice._window_wait('@' || of_name, 1, sluice._window_jobs(rate, rate_per) + burst, sluice._window_of(rate, rate_per),
                permits_from, now_at);
            if greatest(least(floor(bucket.filled + 1e-9), in_window.free), 0) < own then
                own := greatest(least(floor(bucket.filled + 1e-9), in_window.free), 0);
                own_wait := greatest(sluice._until_useful(bucket.filled - own, rate, sluice._queue_burst(rate, rate_per, burst)), in_window.wait);
            end if;
        end if;
        if concurrency > 0 then
            execute {{named_limit_in_flight.sql}} into in_flight using of_name, concurrency;
            if concurrency - in_flight <= own then
                own := greatest(concurrency - in_flight, 0);
                own_full := true;
            end if;
        end if;
        if closed and (closed_until is null or closed_until > now_at) then
            own := 0;
            own_wait := coalesce(extract(epoch from closed_until - now_at), 0);
            own_full := closed_until is null;
        end if;
        if own < room then
            room := own;
            wait := own_wait;
            is_full := own_full;
        elsif own = room then
            wait := greatest(wait, own_wait);
            is_full := is_full or own_full;
        end if;
    end loop;
end
$function$;
