-- worker: Completes many jobs. Each job succeeds or fails on its own.
create or replace function sluice.complete_many(
    ids     uuid[],
    tokens  uuid[],             -- one for each id
    results json[] default null -- one for each id
) returns table (
    id    uuid,
    state text  -- completed, lost or not allowed
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._check_batch(ids, tokens);
    perform sluice._check_each('results', cardinality(results), cardinality(ids));
    perform sluice._check_result('results', result) from unnest(results) as result;
    return query select s.id, s.state from sluice._settle_allowed(ids, tokens, 'complete',
        array(select sluice._bytes(results[n]) from generate_series(1, cardinality(ids)) as n order by n), null, null, null, null) s order by s.no;
end
$function$;
