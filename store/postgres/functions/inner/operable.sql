-- Which of some jobs lie in queues in which the caller may operate, in order. Of the others it must not even learn that they are there.
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
