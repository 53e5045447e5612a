-- Refuses a queue without settings if the store takes only declared queues, or has as many queues as it may.
create or replace function sluice._admit(of_queue text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    policy record;
begin
    if exists (select from sluice.queue q where q.name = of_queue) then
        return;
    end if;
    execute {{queue_policy.sql}} into policy using of_queue;
    if policy.declared then
        raise exception using errcode = 'SL002', message = format('queue %s is not declared', of_queue),
            detail = 'This store takes jobs for declared queues only.',
            hint = format('Look at the name, or declare it with `sluice settings set %s lease=1m --reason …`.', of_queue);
    elsif policy.stored >= policy.max_queues then
        raise exception using errcode = 'SL008',
            message = format('queue %s is not made: the store has %s queues, and at most %s are allowed', of_queue, policy.stored, policy.max_queues),
            hint = 'Delete some with `sluice queues rm`, or raise the bound with `sluice queues policy --max N --reason …`.';
    end if;
end
$function$;
