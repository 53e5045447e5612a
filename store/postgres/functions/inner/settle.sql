-- Settles claimed jobs, all by the same event. Each row has the place of the job in ids, and the job's new state,
-- 'lost' or 'not allowed'. The audit gets an entry for each lost claim.
create or replace function sluice._settle(ids uuid[], tokens uuid[], event text, results bytea[] default null, delays interval[] default null,
    errors text[] default null, stacks text[] default null, reasons text[] default null, refs text[] default null,
    actors text[] default null, poison boolean default false, in_tx boolean[] default null)
returns table (no integer, id uuid, state text)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    move    record;
    row     record;
    nos     integer[] := array(select min(g.n)::integer from unnest(ids) with ordinality as g(given, n) group by g.given order by g.given);
    s_ids   uuid[] := array(select ids[g.n] from unnest(nos) with ordinality as g(n, k) order by g.k);
    s_tokens  uuid[] := array(select tokens[g.n] from unnest(nos) with ordinality as g(n, k) order by g.k);
    s_errors  text[] := array(select sluice._stored_text(errors[g.n]) from unnest(nos) with ordinality as g(n, k) order by g.k);
    s_stacks  text[] := array(select sluice._stored_text(stacks[g.n]) from unnest(nos) with ordinality as g(n, k) order by g.k);
    s_reasons text[] := array(select reasons[g.n] from unnest(nos) with ordinality as g(n, k) order by g.k);
    s_actors  text[] := array(select nullif(actors[g.n], '') from unnest(nos) with ordinality as g(n, k) order by g.k);
    moved   uuid[] := '{}';
    awaited uuid[] := '{}';
    missed  integer[];
    job_id  uuid;
    job_queue text;
    job_state text;
begin
    select * into move from sluice._move(event);
    if move is null or event not in ('complete', 'bury', 'retry', 'release', 'recover', 'dispatch', 'doubt') then
        perform sluice._invalid('event', format('%L settles nothing', event));
    end if;
    if event in ('complete', 'bury') then
        for row in select e.* from sluice._end(event, move.leaves, s_ids, s_tokens,
            array(select results[g.n] from unnest(nos) with ordinality as g(n, k) order by g.k),
            case when event = 'bury' then s_errors end, case when event = 'bury' then s_stacks end, s_reasons,
            case when event = 'bury' then s_actors end,
            case when event = 'complete' then 'nothing' when poison then 'recovery' else 'attempt' end, false) e
        loop
            if row.state = 'let go' then
                perform sluice._notify(row.queue);
                continue;
            end if;
            moved := moved || row.id;
            if row.awaited then
                awaited := awaited || row.id;
            end if;
        end loop;
        perform sluice._unblock(awaited);
    elsif event in ('retry', 'release', 'recover') then
        for job_id, job_queue, job_state in execute {{back.sql}}
            using s_ids, s_tokens, move.leaves, event,
                array(select case when event = 'recover' or event = 'release' and delays[g.n] = interval '0' then null else delays[g.n] end
                      from unnest(nos) with ordinality as g(n, k) order by g.k),
                s_errors, s_stacks, s_reasons, s_actors,
                case event when 'retry' then 'attempt' when 'release' then 'release' else 'recovery' end, false, move.notable
        loop
            moved := moved || job_id;
            perform sluice._notify(job_queue);
        end loop;
    else
        for job_id, job_queue, job_state in execute {{away.sql}}
            using s_ids, s_tokens, move.leaves, event, move.leads_to,
                array(select nullif(refs[g.n], '') from unnest(nos) with ordinality as g(n, k) order by g.k),
                s_errors, s_reasons, s_actors, move.notable
        loop
            moved := moved || job_id;
        end loop;
    end if;
    if moved <> '{}' then
        perform sluice._count_moved(event, moved, event in ('complete', 'bury') and not poison);
        if poison then
            perform sluice._count_moved('recover', moved); -- the lease of a poison job ran out, too
        end if;
    end if;
    missed := array(select g.n from unnest(ids) with ordinality as g(given, n) where not (g.given = any (moved) and g.n = any (nos)));
    for row in select e.* from sluice._explain(ids, tokens, missed, event, move.leads_to, actors, in_tx) e order by e.no loop
        no := row.no;
        id := ids[no];
        state := row.state;
        return next;
    end loop;
    state := move.leads_to;
    for no in select g.n from unnest(nos) as g(n) where not g.n = any (missed) order by g.n loop
        id := ids[no];
        return next;
    end loop;
end
$function$;
