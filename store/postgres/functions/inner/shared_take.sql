-- Counts claimed jobs against the rates of the limits that a queue shares. A caller of functions begins its jobs at
-- once, or hands them back.
create or replace function sluice._shared_take(limits text, jobs integer) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    of_name text; closed boolean; closed_until timestamptz; rate double precision; rate_per bigint; burst bigint; concurrency bigint; version bigint;
    tokens double precision; filled_at timestamptz; claimed_at timestamptz; now_at timestamptz; permits_from timestamptz; clock_ahead bigint; per_key boolean; by_cost boolean;
    at     timestamptz;
    bucket record;
begin
    for of_name, closed, closed_until, rate, rate_per, burst, concurrency, version, tokens, filled_at, claimed_at, now_at, permits_from, clock_ahead, per_key, by_cost
        in execute {{named_limit_read.sql}} using string_to_array(limits, ',')
    loop
        continue when rate <= 0 or per_key or by_cost;
        at := greatest(now_at, claimed_at + interval '1 microsecond');
        select * into bucket from sluice._filled(tokens, filled_at, rate, sluice._queue_burst(rate, rate_per, burst), now_at);
        execute {{started_add.sql}} using '@' || of_name, now_at, jobs::bigint;
        execute {{flow_take.sql}} using '@' || of_name, bucket.filled - jobs, bucket.at, at, null::timestamptz, version, at,
            0::double precision, '', null::timestamptz, null::timestamptz, permits_from, clock_ahead;
    end loop;
end
$function$;
