-- Locks the limits that several queues share, sorted by name, before a claim from these queues. Two calls that lock the
-- limits of one queue after the other could wait for each other. The process that holds a lock may be frozen, so the
-- function waits 1 s for each.
create or replace function sluice._lock_limits(of_queues text[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as $function$
declare
    limits constant text[] := array(select distinct l from sluice.queue q cross join unnest(string_to_array(q.limits, ',')) as l
                                    where q.name = any (of_queues) and q.limits <> '');
    found_limit text;
begin
    if cardinality(of_queues) < 2 or cardinality(limits) < 2 then
        return;
    end if;
    for found_limit in execute {{named_limit_flow.sql}} using limits loop
        null; -- the function needs the statement's effect, not its rows
    end loop;
    for found_limit in execute {{named_limit_lock.sql}} using limits loop
        null;
    end loop;
end
$function$;
