-- Returns whether the callbacks of two batches, as texts, enqueue the same job at an event. Blanks and the order of fields do
-- not matter.
create or replace function sluice._same_call(stored text, given text, call text) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    one   json := nullif(stored, '')::json -> call;
    other json := nullif(given, '')::json -> call;
begin
    if one is null or other is null then
        return one is null and other is null;
    elsif one ->> 'queue' is distinct from other ->> 'queue'
       or coalesce(one ->> 'tenant', '') <> coalesce(other ->> 'tenant', '')
       or coalesce(one ->> 'priority', '5') <> coalesce(other ->> 'priority', '5') then
        return false;
    elsif (one -> 'payload')::text is not distinct from (other -> 'payload')::text then
        return true;
    end if;
    return coalesce((one -> 'payload')::jsonb = (other -> 'payload')::jsonb, false);
end
$function$;
