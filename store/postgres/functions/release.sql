-- worker: Hands a job back, and no attempt is counted: you end, or it is too early for it.
create or replace function sluice.release(
    id            uuid,
    token         uuid,
    delay_seconds double precision default null, -- when it is due again, from now; null: it keeps its place
    reason        text default null              -- for the audit
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._refuse(c.id, c.state, release.token) from sluice.release_many(array[release.id], array[release.token], delay_seconds, reason) c;
    return true;
end
$function$;
