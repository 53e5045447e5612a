-- Stores jobs of a batch together that were checked, and have neither keys nor places among others.
create or replace function sluice._enqueue_plain(items json[], ids uuid[], chosen integer[])
returns table (no integer, id uuid, duplicate boolean, replaced uuid, error text, code text)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    job   record;
    taken uuid[] := '{}';
    found_id uuid;
    s_ids uuid[] := '{}'; queues text[] := '{}'; tenants text[] := '{}'; priorities smallint[] := '{}'; labels text[] := '{}'; attempts smallint[] := '{}';
    dues timestamptz[] := '{}'; delays interval[] := '{}'; expiries timestamptz[] := '{}'; begins integer[] := '{}'; lengths integer[] := '{}';
    told boolean[] := '{}'; in_line boolean[] := '{}';
    payloads bytea;
    at    integer := 1;
begin
    for job in
        select ids[c] as job_id, j.*, sluice._bytes(j.payload) as bytes, coalesce(q.audit = 'full', false) as told,
               coalesce(q.fair or q.tenant_capacity > 0 or q.tenant_rate > 0, false)
                   or exists (select from sluice.tenant_limit t where t.queue in (j.queue, '') and t.says) as by_tenant
        from unnest(chosen) as c
        cross join lateral sluice._job_of(items[c]) j
        left join sluice.queue q on q.name = j.queue
        order by ids[c]
    loop
        s_ids := s_ids || job.job_id; queues := queues || job.queue; tenants := tenants || coalesce(job.tenant, ''); priorities := priorities || job.priority::smallint;
        labels := labels || case when jsonb_typeof(job.labels) = 'object' and job.labels <> '{}' then job.labels::text else '' end;
        attempts := attempts || coalesce(job.max_attempts, 0)::smallint;
        dues := array_append(dues, job.due_at); delays := delays || coalesce(job.delay, '0'); expiries := array_append(expiries, job.expires_at);
        begins := begins || at; lengths := lengths || octet_length(job.bytes); at := at + octet_length(job.bytes);
        told := told || job.told; in_line := in_line || job.by_tenant;
    end loop;
    select string_agg(sluice._bytes(items[array_position(ids, i)] -> 'payload'), '' order by i) into payloads from unnest(s_ids) as i;
    for found_id in execute {{enqueue.sql}} using s_ids, queues, tenants, priorities, array_fill(''::text, array[cardinality(s_ids)]), payloads, labels, attempts,
        dues, delays, expiries, null::boolean[], null::uuid[], told, begins, lengths, in_line, null::text[], null::bigint[], null::text[], null::text[]
    loop
        taken := taken || found_id;
    end loop;
    return query select c, ids[c], ids[c] = any (taken), null::uuid, null::text, null::text from unnest(chosen) as c;
end
$function$;
