-- Ends queued jobs by an act of Sluice's own, such as after a failed job before them or a replacement. No token is
-- needed. The function frees the jobs' keys or hands them on. The ids must be sorted. A row with the state 'let go' is
-- a job that may start now.
create or replace function sluice._cancel_queued(ids uuid[], reasons text[], actors text[])
returns table (id uuid, queue text, state text, awaited boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    move     record;
    keyed    boolean;
    blocker  uuid;
    with_key uuid[] := '{}';
    blockers uuid[] := '{}';
    ended    uuid[] := '{}';
    held     uuid;
    behind   uuid;
begin
    select * into move from sluice._move('cancel');
    for id, queue, state, keyed, blocker, awaited in execute {{end_act.sql}}
        using ids, array['queued'], 'cancel', move.leads_to, null::text[], reasons, actors, null::uuid, move.notable
    loop
        return next;
        ended := ended || id;
        if keyed then
            with_key := with_key || id;
            blockers := array_append(blockers, blocker);
        end if;
    end loop;
    for held, behind in execute {{hold_drop.sql}} using ended loop
        if held = any (with_key) then
            blockers[array_position(with_key, held)] := behind;
        end if;
    end loop;
    if ended <> '{}' then
        perform sluice._count_moved('cancel', ended);
    end if;
    return query select f.id, f.queue, f.state, false from sluice._free_keys(with_key, blockers) f;
end
$function$;
