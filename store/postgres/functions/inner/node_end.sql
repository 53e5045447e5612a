-- Returns how a job of a flow has ended.
create or replace function sluice._node_end(of_id uuid, out queue text, out state text, out result json, out error text)
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    state := 'unknown';
    if exists (select from sluice.live l where l.id = of_id) then
        state := 'unfinished';
        return;
    end if;
    select d.queue, d.outcome, sluice._json(d.result),
        case when octet_length(d.result) = 0 then 'the result is no longer kept: keep_results of its queue is over' else d.error end into queue, state, result, error
    from sluice.done d where d.id = of_id order by d.generation desc limit 1;
    state := coalesce(state, 'unknown');
end
$function$;
