-- Ends jobs, and then frees their keys or hands them on. States says from which states; ids are sorted. A row whose state
-- is 'let go' is a job that may start now.
create or replace function sluice._end(event text, states text[], ids uuid[], tokens uuid[], results bytea[], errors text[],
    stacks text[], reasons text[], actors text[], act_id uuid, counts text, late boolean)
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
        using ids, tokens, states, event, move.leads_to, results, errors, stacks, reasons, actors, act_id, counts, late, move.notable, false
    loop
        return next;
        if keyed then
            with_key := with_key || id;
            blockers := array_append(blockers, blocker);
        end if;
    end loop;
    if with_key = '{}' then
        return;
    end if;
    if array_remove(blockers, null) <> '{}' then
        execute {{key_hand_on.sql}} using with_key, blockers;
    end if;
    awaited := false;
    for id, queue, state in execute {{key_free.sql}} using with_key loop
        return next;
    end loop;
end
$function$;
