-- Returns a reason, open or closed, for each limit that a queue shares.
create or replace function sluice._limit_reasons(limits text, limit_key text, now_at timestamptz)
returns table (reason text, open boolean, summary text, until timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    n         record;
    in_flight bigint;
    in_window record;
    wait      double precision;
    of_key    text; parked bigint; tokens double precision; filled_at timestamptz; closed_until timestamptz; clock timestamptz;
begin
    reason := 'limit';
    for n in
        select given.name as wanted, l.*, f.tokens, f.filled_at, f.permits_from
        from (select distinct g as name from unnest(string_to_array(limits, ',')) g) given
        left join sluice.named_limit l on l.name = given.name
        left join sluice.flow f on f.queue = '@' || given.name
        order by given.name collate "C"
    loop
        open := true;
        until := null;
        if n.name is null then
            summary := format('limit "%s" is not stored, and limits nothing', n.wanted);
            return next;
            continue;
        end if;
        if n.per_key and not (n.closed and (n.closed_until is null or n.closed_until > now_at)) then
            if limit_key is null then
                summary := format('limit "%s" is per key, and the job has no limit key', n.name);
                return next;
                continue;
            end if;
            execute {{limit_key_uses.sql}} into of_key, in_flight, parked, tokens, filled_at, closed_until, clock
                using n.name, array[limit_key], 1, n.concurrency::integer;
            wait := case when n.rate > 0 then sluice._token_wait(tokens, filled_at, sluice._refill(n.rate, n.rate_per_ms, n.burst), 1000, sluice._burst(n.rate, n.rate_per_ms, n.burst)::bigint, now_at) else 0 end;
            if closed_until > now_at then
                open := false;
                until := closed_until;
                summary := format('key "%s" of limit "%s" is closed until %s', limit_key, n.name, sluice._instant(until));
            elsif n.concurrency > 0 and in_flight >= n.concurrency then
                open := false;
                summary := format('%s in flight with key "%s" of limit "%s", and %s are allowed; one has to end first', in_flight, limit_key, n.name, n.concurrency);
            elsif wait > 0 then
                open := false;
                until := now_at + make_interval(secs => wait);
                summary := format('key "%s" of limit "%s" has its next token at %s', limit_key, n.name, until);
            else
                summary := format('key "%s" of limit "%s" lets a job start', limit_key, n.name);
            end if;
            return next;
            continue;
        end if;
        wait := 0;
        in_flight := 0;
        if n.concurrency > 0 then
            execute {{named_limit_in_flight.sql}} into in_flight using n.name, n.concurrency;
        end if;
        if n.rate > 0 and n.by_cost then
            select k.tokens, k.filled_at into tokens, filled_at from sluice.limit_key k where k.name = n.name and k.key = '';
            if filled_at is not null then
                wait := sluice._token_wait(tokens, filled_at, sluice._refill(n.rate, n.rate_per_ms, n.burst), 1000, sluice._burst(n.rate, n.rate_per_ms, n.burst)::bigint, now_at);
            end if;
        elsif n.rate > 0 then
            select * into in_window from sluice._window_wait('@' || n.name, 1, sluice._window_jobs(n.rate, n.rate_per_ms) + n.burst,
                sluice._window_of(n.rate, n.rate_per_ms), null, now_at);
            wait := greatest(in_window.wait, sluice._token_wait(coalesce(n.tokens, 0), n.filled_at, n.rate, n.rate_per_ms, n.burst, now_at));
        end if;
        if n.closed and (n.closed_until is null or n.closed_until > now_at) then
            open := false;
            until := n.closed_until;
            summary := format('limit "%s" is closed', n.name) || coalesce(' until ' || sluice._instant(until), '')
                || format('; %s changed it last at %s: %s', n.changed_by, sluice._instant(n.changed_at), n.reason);
        elsif n.concurrency > 0 and in_flight >= n.concurrency then
            open := false;
            summary := format('%s in flight in the queues of limit "%s", and %s are allowed; one has to end first', in_flight, n.name, n.concurrency);
        elsif wait > 0 then
            open := false;
            until := now_at + make_interval(secs => wait);
            summary := format('limit "%s" of %s has its next token at %s', n.name, sluice._rate_text(n.rate, n.rate_per_ms), until);
        else
            summary := format('limit "%s" lets a job start', n.name);
        end if;
        return next;
    end loop;
end
$function$;
