-- Returns a text that changes with each edit of a waiting job and with each claim; null: the job does not wait.
create or replace function sluice._version(of_job uuid) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    return (
        select md5(concat_ws('|', l.generation, l.attempts, l.releases, l.recoveries, l.priority, (extract(epoch from l.due_at) * 1000000)::bigint,
            coalesce(j.timeout_ms, 0), md5(j.payload), md5(coalesce(j.labels::text, '')), l.tenant, md5(coalesce(j.limit_key, '')), l.cost))
        from sluice.live l join sluice.job j on j.id = l.id
        where l.id = of_job and l.state = 'queued');
end
$function$;
