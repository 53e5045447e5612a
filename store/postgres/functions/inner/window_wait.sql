-- Returns how many jobs of a queue may start in the window of its rate, and the seconds until the wanted number may; 0:
-- now. A claimed job that is not known to have begun counts as begun at its claim.
create or replace function sluice._window_wait(of_queue text, wanted double precision, allowed double precision, per interval, permits_from timestamptz,
    now_at timestamptz, out free double precision, out wait double precision)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    ends    timestamptz[] := '{}';
    counts  bigint[] := '{}';
    claimed timestamptz; token uuid; jobs bigint; begun bigint; gone bigint; check_at timestamptz; at timestamptz;
    missing double precision;
    row     record;
begin
    free := allowed;
    for claimed, token, jobs, begun, gone, check_at in execute {{permits.sql}} using of_queue, permits_from loop
        if jobs - begun - gone > 0 then
            free := free - (jobs - begun - gone);
            ends := ends || greatest(claimed + per, now_at + greatest(per / 100, interval '20 milliseconds'));
            counts := counts || (jobs - begun - gone);
        end if;
    end loop;
    for at, jobs in execute {{started.sql}} using of_queue, now_at - per loop
        free := free - jobs;
        ends := ends || at + per;
        counts := counts || jobs;
    end loop;
    wait := 0;
    missing := least(wanted, allowed) - free;
    if missing <= 0 then
        return;
    end if;
    for row in select e, c from unnest(ends, counts) as g(e, c) order by e loop
        missing := missing - row.c;
        wait := greatest(0, extract(epoch from row.e - now_at));
        exit when missing <= 0;
    end loop;
end
$function$;
