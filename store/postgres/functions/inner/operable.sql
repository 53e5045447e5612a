-- Returns the jobs of a list that lie in queues in which the caller may operate, sorted by id. The caller must not
-- learn whether the other jobs exist.
create or replace function sluice._operable(given uuid[]) returns uuid[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if given is null or array_position(given, null) is not null or cardinality(given) > 10000 then
        perform sluice._invalid('ids', 'they must be at most 10000, and none of them null');
    end if;
    return array(
        select j.id from sluice.job j where j.id = any (given) and j.queue = any (array(
            select q.queue from (select distinct w.queue from sluice.job w where w.id = any (given)) q where sluice._may('operate', q.queue)))
        order by j.id);
end
$function$;
