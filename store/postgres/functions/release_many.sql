-- worker: Hands many jobs back. Each job succeeds or fails on its own.
create or replace function sluice.release_many(
    ids           uuid[],
    tokens        uuid[],                        -- one for each id
    delay_seconds double precision default null, -- the wait until the jobs are due again; null: their due times stay
    reason        text default null              -- for the audit
) returns table (
    id    uuid,
    state text  -- queued, lost or not allowed
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._check_batch(ids, tokens);
    return query select s.id, s.state from sluice._settle_allowed(ids, tokens, 'release', null,
        array_fill(sluice._delay('delay_seconds', delay_seconds), array[cardinality(ids)]), null, null,
        array_fill(sluice._stored_text(reason), array[cardinality(ids)])) s order by s.no;
end
$function$;
