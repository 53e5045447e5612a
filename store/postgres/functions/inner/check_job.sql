-- Refuses a job that no store can keep, or that the settings of its queue do not allow.
create or replace function sluice._check_job({{enqueue arguments}}) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    label    record;
    instant  timestamptz;
begin
    perform sluice._check_name('tenant', tenant, {{max tenant bytes}});
    perform sluice._check_name('key', key, {{max key bytes}});
    perform sluice._check_name('order_key', order_key, {{max key bytes}});
    perform sluice._check_name('hold', hold, 1000);
    perform sluice._check_name('limit_key', limit_key, {{max key bytes}});
    if payload is null then
        perform sluice._invalid('payload', 'it is missing; it must be JSON');
    elsif coalesce(key, '') = '' and (key_scope <> 'unfinished' or key_window is not null or on_duplicate <> 'keep') then
        perform sluice._invalid('key', 'a key scope, key window or on-duplicate rule needs a key');
    elsif coalesce(key_scope, '') not in ('unfinished', 'window', 'forever') then
        perform sluice._invalid('key_scope', format('%L must be one of unfinished, window, forever', left(key_scope, 40)));
    elsif coalesce(on_duplicate, '') not in ('keep', 'replace', 'coalesce', 'debounce') then
        perform sluice._invalid('on_duplicate', format('%L must be one of keep, replace, coalesce, debounce', left(on_duplicate, 40)));
    elsif key_scope <> 'window' and key_window is not null and (on_duplicate <> 'debounce' or key_window <= interval '0') then
        perform sluice._invalid('key_window', 'only the key scope window has a window');
    elsif key_scope = 'window' and coalesce(key_window <= interval '0', true) then
        perform sluice._invalid('key_window', 'the key scope window needs a window longer than 0');
    elsif on_duplicate = 'debounce' and key_scope <> 'unfinished' or on_duplicate = 'coalesce' and key_scope = 'forever'
        or on_duplicate = 'coalesce' and key_scope = 'window' and (due_at is not null or delay > interval '0') then
        perform sluice._invalid('on_duplicate', format('%s needs the key scope unfinished; only coalesce may have window instead, without due_at and delay', on_duplicate));
    elsif priority is null or priority < 1 or priority > 10 then
        perform sluice._invalid('priority', format('%s must be from 1 (first) to 10 (last)', coalesce(priority::text, 'null')));
    elsif max_attempts < 1 or max_attempts > {{max count}} then
        perform sluice._invalid('max_attempts', format('%s must be from 1 to {{max count}}', max_attempts));
    elsif timeout < interval '1 millisecond' or timeout > interval '30 days' or mod(extract(epoch from timeout)::numeric * 1000, 1) <> 0 then
        perform sluice._invalid('timeout', format('%s must be from 1 ms to 30 days, in whole milliseconds', timeout));
    elsif cost < 1 or cost > 1000000 then
        perform sluice._invalid('cost', format('%s must be from 1 to 1000000', cost));
    elsif delay > interval '7900 years' or key_window > interval '7900 years' then
        perform sluice._invalid(case when delay > interval '7900 years' then 'delay' else 'key_window' end, 'it is longer than 7900 years');
    elsif delay < interval '0' then
        perform sluice._invalid('delay', format('%s is negative', delay));
    elsif delay > interval '0' and due_at is not null then
        perform sluice._invalid('delay', 'due_at and delay say the same thing; give one of them');
    elsif expires_at <= due_at then
        perform sluice._invalid('expires_at', 'the job would expire before it is due');
    elsif coalesce(after_failure, '') !~ '^(|(cancel|run|wait)( [0-9a-f-]{36}=(cancel|run|wait)){0,{{max after failures}}})$' then
        perform sluice._invalid('after_failure', format('%L must be one of cancel, run, wait, and behind it at most {{max after failures}} exceptions, each a blank and ID=RULE', left(after_failure, 40)));
    elsif exists (select from regexp_matches(after_failure, ' ([0-9a-f-]{36})=', 'g') as m where not coalesce(m[1]::uuid = any (after), false)) then
        perform sluice._invalid('after_failures', 'the job does not run after one of them');
    elsif cardinality(after) > {{max after}} then
        perform sluice._invalid('after', format('%s jobs are more than {{max after}}; let one job run after a part of them, and this one after that', cardinality(after)));
    elsif coalesce(cardinality(after), 0) = 0 and after_failure <> '' then
        perform sluice._invalid('after_failure', 'the job runs after no other; name one in after');
    elsif array_position(after, null) is not null or '00000000-0000-0000-0000-000000000000' = any (after) then
        perform sluice._invalid('after', 'one of the ids is empty');
    elsif job_id = any (after) then
        perform sluice._invalid('after', 'the job cannot run after itself');
    elsif job_id = '00000000-0000-0000-0000-000000000000' then
        perform sluice._invalid('job_id', 'it is empty');
    elsif job_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff' then
        perform sluice._invalid('job_id', 'the largest UUID names no job');
    end if;
    if delay > interval '0' and expires_at <= clock_timestamp() + delay then
        perform sluice._invalid('expires_at', 'the job would expire before it is due');
    elsif expires_at <= clock_timestamp() then
        perform sluice._invalid('expires_at', 'it has passed');
    end if;
    foreach instant in array array[due_at, expires_at] loop
        if instant is not null and not (isfinite(instant) and instant >= '1970-01-01 00:00:00+00' and instant < '10000-01-01 00:00:00+00') then
            perform sluice._invalid('due_at or expires_at', format('the year of %s must be from 1970 to 9999', instant));
        end if;
    end loop;
    if labels is not null and jsonb_typeof(labels) not in ('object', 'null') then
        perform sluice._invalid('labels', 'they must be an object of texts');
    elsif jsonb_typeof(labels) = 'object' then
        if (select count(*) from jsonb_object_keys(labels)) > {{max labels}} then
            perform sluice._invalid('labels', 'they are more than {{max labels}}');
        end if;
        for label in select l.key as name, l.value as value from jsonb_each(labels) l loop
            if label.name = '' or jsonb_typeof(label.value) <> 'string' then
                perform sluice._invalid('labels', 'each needs a name, and a text as its value');
            end if;
            perform sluice._check_name('labels', label.name, {{max label bytes}});
            perform sluice._check_name('labels', label.value #>> '{}', {{max label bytes}});
        end loop;
    end if;
    if queue <> 'sluice.flow.map' then -- there the payload stands inside the definition of the map
        perform sluice._check_depth('payload', payload);
    end if;
    perform sluice._check_payload(queue, payload);
end
$function$;
