-- Takes a key for a new job. If another job has the key, the function decides about the new job by on_duplicate. Refused
-- says that the new job would change a job of another tenant.
create or replace function sluice._place_behind(queue text, key text, job_id uuid, tenant text, key_scope text, key_window interval, on_duplicate text, payload bytea, labels text, due_at timestamptz, delay interval, expires_at timestamptz,
    out duplicate_of uuid, out replaced uuid, out blocked_by uuid, out awaited uuid, out starts_at timestamptz, out refused boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    a_queue text;
    a_key   text;
    holder  uuid;
    unfinished_only boolean;
    state   text;
    behind  uuid;
    stored  boolean;
    for_window boolean;
    owner   text; -- the tenant of the holder; null: the holder was deleted
    free    uuid;
    looked  uuid; -- the holder that was looked at again
    row     record;
    span    interval := case when key_scope = 'window' then key_window end;
begin
    execute {{key_take.sql}} into a_queue, a_key
        using array[queue], array[key], array[job_id], array[span], array[key_scope = 'forever'], true;
    if a_key is not null then
        return;
    end if;
    loop
        execute {{key_holders.sql}} into a_queue, a_key, holder, unfinished_only, state, behind, stored, for_window, owner
            using array[queue], array[key], array[job_id];
        if stored or holder = job_id then
            duplicate_of := job_id;
        elsif unfinished_only and state is null then -- the holder of the key has ended
            execute {{key_pass.sql}} using queue, key, job_id, span, key_scope = 'forever';
        elsif on_duplicate in ('replace', 'coalesce', 'debounce') and owner <> coalesce(tenant, '') then
            refused := true;
        elsif on_duplicate = 'replace' and state = 'queued' then
            execute {{lock_waiting.sql}} into free using holder;
            continue when free is null; -- the holder has started or ended meanwhile
            execute {{key_pass.sql}} using queue, key, job_id, span, key_scope = 'forever';
            for row in select e.* from sluice._cancel_queued(array[holder],
                array[format('replaced by %s', job_id)], array['producer']) e
            loop
                if row.state = 'let go' then
                    perform sluice._notify(row.queue);
                elsif row.awaited then
                    awaited := row.id;
                end if;
            end loop;
            replaced := holder;
            blocked_by := behind;
        elsif on_duplicate = 'coalesce' and key_scope = 'window' and for_window then
            execute {{coalesce.sql}} into free using holder, payload, labels, expires_at;
            if free is not null then
                duplicate_of := holder;
                return;
            end if;
            execute {{key_pass_on.sql}} into starts_at using queue, key, job_id, key_window;
        elsif on_duplicate in ('coalesce', 'debounce') and unfinished_only then
            execute {{coalesce.sql}} into free using holder, payload, labels, expires_at;
            if free is not null then
                duplicate_of := holder;
                if on_duplicate = 'debounce' then
                    execute {{put_off.sql}} using holder, due_at, delay, key_window, expires_at;
                end if;
                return;
            end if;
            if state = 'queued' and looked is distinct from holder then -- the holder may have started or ended meanwhile
                looked := holder;
                continue;
            end if;
            execute {{key_pass.sql}} using queue, key, job_id, span, key_scope = 'forever';
            blocked_by := holder;
        else
            duplicate_of := holder;
        end if;
        exit;
    end loop;
    if blocked_by is not null and not exists (select from sluice.live l where l.id = _place_behind.blocked_by) then
        blocked_by := null;
    end if;
end
$function$;
