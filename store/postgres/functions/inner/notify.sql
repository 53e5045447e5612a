-- Wakes the listeners of a queue when the transaction commits. A session repeats its last signal at most 10 times a
-- second. A listener that misses a signal polls.
create or replace function sluice._notify(of_queue text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    mark text := of_queue || ' ' || floor(extract(epoch from clock_timestamp()) * 10)::text;
begin
    if coalesce(current_setting('sluice.notified', true), '') <> mark then
        perform set_config('sluice.notified', mark, false);
        perform pg_notify('{{channel}}', 'sql queue ' || of_queue);
    end if;
end
$function$;
