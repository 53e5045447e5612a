-- operator: Stops the claims of a queue, by functions and by programs. Claimed jobs go on, and no job is lost.
create or replace function sluice.pause(
    queue  text,
    reason text,                     -- why; it must not be blank
    until  timestamptz default null, -- when the queue opens by itself; null: when somebody resumes it
    actor  text default null         -- who acts, for the audit; null: the role
) returns boolean -- false: the queue was paused until the same instant already
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    if not isfinite(until) or until >= '10000-01-01 00:00:00+00' then
        perform sluice._invalid('until', format('the year of %s must be from 1970 to 9999', until));
    elsif until <= clock_timestamp() then
        perform sluice._invalid('until', format('%s has passed', until));
    end if;
    return sluice._set_paused(queue, true, until, reason, actor);
end
$function$;
