-- worker: Extends a claim from now on, and returns its new end. A claim with more than two thirds of its lease left is
-- not written, so frequent calls cost little.
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
