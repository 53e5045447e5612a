-- Refuses a job that names a job of a queue in which the caller may not enqueue, as its own id or in `after`. The error
-- tells the caller only that the id cannot be used.
create or replace function sluice._check_seen(given_id uuid, others uuid[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    hidden uuid;
begin
    if sluice._trusted() then
        return;
    elsif exists (select from sluice.job j where j.id = given_id and not sluice._may('produce', j.queue)) then
        perform sluice._invalid('job_id', 'it cannot be used; leave it out, or draw another one');
    end if;
    select j.id into hidden from sluice.job j where j.id = any (others) and not sluice._may('produce', j.queue) order by j.id limit 1;
    if hidden is not null then
        raise exception using errcode = 'SL005', message = sluice._missing(hidden), hint = 'Enqueue that one first, or in the same call of enqueue_many.';
    end if;
end
$function$;
