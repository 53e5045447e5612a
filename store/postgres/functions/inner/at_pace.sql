-- Decides whether a holder may claim from a queue again, if the queue has an interval, and records the claim.
create or replace function sluice._at_pace(of_queue text, by_holder text, interval_ms bigint) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    if coalesce(interval_ms, 0) = 0 then
        return true;
    end if;
    insert into sluice.pace as p (queue, holder, claimed_at) values (of_queue, by_holder, clock_timestamp())
    on conflict on constraint pace_pkey do update set claimed_at = excluded.claimed_at
    where p.claimed_at <= excluded.claimed_at - interval_ms * interval '1 millisecond' or p.claimed_at > excluded.claimed_at;
    if not found then
        return false;
    end if;
    delete from sluice.pace p where p.ctid = any (array(
        select o.ctid from sluice.pace o where o.queue = of_queue and o.claimed_at < now() - interval '2 days' limit 10 for update skip locked));
    return true;
end
$function$;
