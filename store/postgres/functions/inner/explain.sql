-- Finds out why settlements moved no job. Either an earlier call wrote the same, or the state machine has no such move,
-- or the claim is lost. The audit gets an entry for each lost claim.
create or replace function sluice._explain(ids uuid[], tokens uuid[], missed integer[], event text, leads_to text, actors text[], in_tx boolean[])
returns table (no integer, state text)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    standing  text[] := array_fill(null::text, array[cardinality(ids)]);
    queues    text[] := array_fill(''::text, array[cardinality(ids)]);
    mine      boolean;
    at_id     uuid;
    at_queue  text;
    at_state  text;
    at_life   integer;
    at_token  uuid;
    lost      integer[] := '{}';
    n         integer;
    by_token  uuid[] := array_fill(null::uuid, array[cardinality(ids)]);
begin
    if missed = '{}' then
        return;
    end if;
    for at_id, at_queue, at_state, at_life, at_token in execute {{standing.sql}}
        using array(select distinct ids[m] from unnest(missed) as m)
    loop
        foreach n in array missed loop
            if ids[n] = at_id then
                standing[n] := at_state;
                queues[n] := at_queue;
                by_token[n] := at_token;
            end if;
        end loop;
    end loop;
    foreach no in array missed loop
        mine := coalesce(standing[no] is not null and by_token[no] = tokens[no], false);
        if mine and standing[no] = leads_to
            or coalesce(in_tx[no], false) and (not mine or standing[no] in ('completed', 'dead', 'cancelled')) then
            state := leads_to;
        elsif mine and standing[no] not in ('completed', 'dead', 'cancelled', 'queued') then
            state := 'not allowed';
        else
            state := 'lost';
            lost := lost || no;
        end if;
        return next;
    end loop;
    if lost <> '{}' then
        execute {{tell_lost.sql}} using
            array(select ids[l] from unnest(lost) as l), array(select queues[l] from unnest(lost) as l),
            array(select coalesce(standing[l], '') from unnest(lost) as l), array_fill('refused: ' || event, array[cardinality(lost)]),
            array(select coalesce(actors[l], sluice._caller()) from unnest(lost) as l);
    end if;
end
$function$;
