-- Refuses to open a batch whose id another batch has. An open that is sent again finds its own batch. A caller that may not
-- read the stored batch learns nothing else of it.
create or replace function sluice._check_batch_again(of_batch uuid, given_name text, given_parent uuid, given_calls text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    stored sluice.batch;
    other  text[] := '{}';
    call   text;
begin
    select b.* into stored from sluice.batch b where b.id = of_batch;
    if stored.name <> given_name then
        other := other || 'name'::text;
    end if;
    if stored.parent is distinct from given_parent then
        other := other || 'parent'::text;
    end if;
    foreach call in array array['on_complete', 'on_success', 'on_death'] loop
        if not sluice._same_call(stored.callbacks, given_calls, call) then
            other := other || call;
        end if;
    end loop;
    if other = '{}' then
        return;
    elsif not sluice._owns_batch(of_batch) then
        perform sluice._invalid('batch_id', format('%s is taken by another batch; open a new one without batch_id', of_batch));
    end if;
    perform sluice._invalid('batch_id', format('batch %s is stored with another %s; open it as it is stored, or open a new one without batch_id', of_batch, array_to_string(other, ', ')));
end
$function$;
