-- worker: Records that attempts of many jobs failed. Each job succeeds or fails on its own.
create or replace function sluice.fail_many(
    ids           uuid[],
    tokens        uuid[],                          -- one for each id
    errors        text[],                          -- one for each id
    retryable     boolean[] default null,          -- one for each id
    retry_seconds double precision[] default null, -- one for each id
    stacks        text[] default null              -- one for each id
) returns table (
    id    uuid,
    state text  -- queued, dead, lost or not allowed
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    allowed uuid[];
    states  text[];
    events  text[];
    reasons text[];
    delays  interval[];
    row     record;
    of_event text;
    nos     integer[];
begin
    perform sluice._check_batch(ids, tokens);
    perform sluice._check_each('errors', cardinality(errors), cardinality(ids));
    perform sluice._check_each('retryable', cardinality(retryable), cardinality(ids));
    perform sluice._check_each('retry_seconds', cardinality(retry_seconds), cardinality(ids));
    perform sluice._check_each('stacks', cardinality(stacks), cardinality(ids));
    if array_position(retryable, null) is not null then
        perform sluice._check_said('retryable', null);
    end if;
    allowed := sluice._allowed(ids);
    states := array_fill('retry'::text, array[cardinality(ids)]);
    reasons := array_fill(null::text, array[cardinality(ids)]);
    delays := array_fill(null::interval, array[cardinality(ids)]);
    for row in
        select g.n, l.state, l.attempts + 1 as attempt, j.queue, coalesce(j.max_attempts, q.max_attempts, {{max attempts}}) as most,
               (l.state = 'queued' or l.id is null and d.outcome = 'dead' and d.token = g.token) as decided
        from unnest(ids, tokens) with ordinality as g(id, token, n)
        join lateral (select * from sluice.job w where w.id = g.id offset 0) j on true
        left join sluice.queue q on q.name = j.queue
        left join lateral (select * from sluice.live w where w.id = g.id and w.token = g.token offset 0) l on true
        left join lateral (
            select o.outcome, o.token from sluice.done o where o.id = g.id order by o.generation desc limit 1
        ) d on true
        where j.id = any (allowed)
    loop
        if row.decided then -- the worker repeats its call
            states[row.n] := case row.state when 'queued' then 'retry' else 'bury' end;
        elsif not coalesce(retryable[row.n], true) then
            states[row.n] := 'bury';
            reasons[row.n] := 'permanent error';
        elsif row.attempt >= row.most then
            states[row.n] := 'bury';
            reasons[row.n] := 'attempts spent';
        else
            delays[row.n] := coalesce(sluice._delay('retry_seconds', retry_seconds[row.n]), sluice._backoff(row.queue, row.attempt));
        end if;
    end loop;
    events := states;
    foreach of_event in array array['retry', 'bury'] loop
        nos := array(select n::integer from unnest(events) with ordinality as g(s, n) where g.s = of_event order by n);
        continue when nos = '{}';
        for row in select s.no, s.state from sluice._settle_allowed(
            array(select ids[n] from unnest(nos) as n), array(select tokens[n] from unnest(nos) as n), of_event, null,
            array(select delays[n] from unnest(nos) as n), array(select errors[n] from unnest(nos) as n),
            array(select stacks[n] from unnest(nos) as n), array(select reasons[n] from unnest(nos) as n)) s
        loop
            states[nos[row.no]] := row.state;
        end loop;
    end loop;
    return query select g.i, states[g.n] from unnest(ids) with ordinality as g(i, n) order by g.n;
end
$function$;
