-- worker: Gives a claim more time, from now on, and says until when it holds. One that has more than two thirds of its lease
-- left is only looked at, so that asking often costs little.
create or replace function sluice.renew(
    id            uuid,
    token         uuid,
    lease_seconds double precision default null -- null: the queue's setting lease
) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    row record;
begin
    select r.* into row from sluice.renew_many(array[id], array[token], lease_seconds) r;
    if not row.held then
        perform sluice._refuse(id, 'lost', token);
    end if;
    return row.lease_until;
end
$function$;
