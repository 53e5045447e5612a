-- Settles jobs of queues in which the caller may work. The caller gets 'lost' for all other jobs.
create or replace function sluice._settle_allowed(ids uuid[], tokens uuid[], event text, results bytea[], delays interval[], errors text[], stacks text[], reasons text[])
returns table (no integer, id uuid, state text)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    allowed uuid[] := sluice._allowed(ids);
    nos     integer[] := array(select g.n::integer from unnest(ids) with ordinality as g(i, n) where g.i = any (allowed) order by g.n);
    all_of  boolean := cardinality(nos) = cardinality(ids);
begin
    if all_of then
        return query select s.no, s.id, s.state from sluice._settle(ids, tokens, event, results, delays, errors, stacks, reasons) s;
        return;
    end if;
    return query select nos[s.no], s.id, s.state from sluice._settle(
        array(select ids[n] from unnest(nos) as n), array(select tokens[n] from unnest(nos) as n), event,
        array(select results[n] from unnest(nos) as n), array(select delays[n] from unnest(nos) as n),
        array(select errors[n] from unnest(nos) as n), array(select stacks[n] from unnest(nos) as n), array(select reasons[n] from unnest(nos) as n)) s;
    return query select g.n::integer, g.i, 'lost' from unnest(ids) with ordinality as g(i, n) where not g.n = any (nos);
end
$function$;
