-- producer: Closes a batch: no more jobs can be added. It is complete when those that are in it have ended; without jobs, at once.
-- A closed batch stays as it is. Inside your own transaction, it is closed if and only if that commits.
create or replace function sluice.close_batch(
    batch_id uuid -- from open_batch
) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    found integer;
begin
    execute {{batch_close.sql}} into found using batch_id, false;
    if found = 0 then
        raise exception using errcode = 'SL005', message = format('batch %s is not stored', batch_id), hint = 'Open it with open_batch.';
    end if;
end
$function$;
