-- Refuses a queue that has neither settings nor unfinished jobs, because its name may be misspelt.
create or replace function sluice._check_known(of_queue text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if exists (select from sluice.queue q where q.name = of_queue)
        or exists (select from sluice.live l where l.queue = of_queue and l.state = 'queued' and l.blocked_by is null and not l.in_tenant_queue)
        or exists (select from sluice.live l where l.queue = of_queue) then
        return;
    end if;
    raise exception using errcode = 'SL002', message = format('queue %s is not known', of_queue),
        detail = 'It has no settings and no unfinished jobs.',
        hint = format('Make it with `sluice settings set %s lease=180s`, or enqueue into it with new_queue => true.', of_queue);
end
$function$;
