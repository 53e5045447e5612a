-- operator: Takes back jobs of a queue whose lease ran out, and buries jobs that have lost max_recoveries holders.
-- Upkeep and claims do so too. An unknown queue has no jobs.
create or replace function sluice.requeue_expired(
    queue text,
    batch integer default 1000, -- the most jobs, from 1 to 10000
    actor text default null     -- who acts, for the audit; null: the role
) returns table (
    requeued integer,
    buried   integer
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._check_queue('operate', queue);
    perform sluice._check_size(batch);
    return query select r.requeued, r.buried from sluice._recover(queue, batch, sluice._actor(actor)) r;
end
$function$;
