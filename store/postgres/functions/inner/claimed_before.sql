-- Returns the jobs that an earlier claim of this holder with this token got, in case its answer was lost. The function
-- reads the claimed jobs of the queues.
create or replace function sluice._claimed_before(names text[], of_token uuid, of_holder text)
returns table (queue text, token uuid, {{columns}})
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    return query
    select l.queue, l.token, {{l.claimed}}, {{j.given}},
           {{j.more}}
    from sluice.live l
    join sluice.job j on j.id = l.id
    where l.state = 'claimed' and l.queue = any (names) and l.token = of_token and l.holder = of_holder
    order by l.queue, l.priority, l.due_at, l.id;
end
$function$;
