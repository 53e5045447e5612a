-- Returns whether the caller may read and close a batch: its role opened the batch, or may produce in the queues of all
-- its callbacks. To others the batch is not stored: jobs show the ids
-- of their batches.
create or replace function sluice._owns_batch(of_batch uuid) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    return sluice._trusted() or exists (
        select from sluice.batch b
        where b.id = of_batch
          and (exists (select from pg_roles r where r.rolname = b.created_by and pg_has_role(sluice._caller(), r.oid, 'usage'))
               or b.callbacks <> '' and not exists (
                   select from json_each(b.callbacks::json) as c where not sluice._may('produce', c.value ->> 'queue'))));
end
$function$;
