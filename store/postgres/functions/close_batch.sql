-- producer: Closes a batch: producers can add no more jobs. The batch is complete when its jobs have ended; without
-- jobs, it is complete at once. Closing a closed batch changes nothing. Inside your own transaction, the batch closes
-- only if the transaction commits. A role closes the batches that it may read.
create or replace function sluice.close_batch(
    batch_id uuid -- from open_batch
) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    found integer := 0;
begin
    if sluice._owns_batch(batch_id) then
        execute {{batch_close.sql}} into found using batch_id, false;
    end if;
    if found = 0 then
        raise exception using errcode = 'SL005', message = format('batch %s is not stored', batch_id), hint = 'Open it with open_batch.';
    end if;
end
$function$;
