-- operator: Opens a paused queue, and its jobs go on.
create or replace function sluice.resume(
    queue  text,
    reason text,             -- why; it must not be blank
    actor  text default null -- who acts, for the audit; null: the role
) returns boolean -- false: the queue was open already
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    return sluice._set_paused(queue, false, null, reason, actor);
end
$function$;
