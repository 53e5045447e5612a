-- Ends claimed jobs whose tokens match, and then frees their keys or hands them on. Argument states lists the states
-- that the jobs may leave; the ids must be sorted. A row with the state 'let go' is a job that may start now.
create or replace function sluice._end(event text, states text[], ids uuid[], tokens uuid[], results bytea[], errors text[],
    stacks text[], reasons text[], actors text[], counts text, late boolean)
returns table (id uuid, queue text, state text, awaited boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    move     record;
    keyed    boolean;
    blocker  uuid;
    with_key uuid[] := '{}';
    blockers uuid[] := '{}';
begin
    select * into move from sluice._move(event);
    for id, queue, state, keyed, blocker, awaited in execute {{end.sql}}
        using ids, tokens, states, event, move.leads_to, results, errors, stacks, reasons, actors, counts, late, move.notable, false
    loop
        return next;
        if keyed then
            with_key := with_key || id;
            blockers := array_append(blockers, blocker);
        end if;
    end loop;
    return query select f.id, f.queue, f.state, false from sluice._free_keys(with_key, blockers) f;
end
$function$;
