-- worker: Hands a job back without counting an attempt, for example because you end or the job is too early.
create or replace function sluice.release(
    id            uuid,
    token         uuid,
    delay_seconds double precision default null, -- the wait until the job is due again; null: its due time stays
    reason        text default null              -- for the audit
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._refuse(c.id, c.state, release.token) from sluice.release_many(array[release.id], array[release.token], delay_seconds, reason) c;
    return true;
end
$function$;
