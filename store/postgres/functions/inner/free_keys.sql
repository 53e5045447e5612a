-- Frees the keys of jobs that have ended, or hands them on, and returns the jobs that may start now. The next recheck looks
-- at waiting jobs that another transaction has locked.
create or replace function sluice._free_keys(with_key uuid[], blockers uuid[])
returns table (id uuid, queue text, state text)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    if with_key = '{}' then
        return;
    end if;
    if array_remove(blockers, null) <> '{}' then
        execute {{key_hand_on.sql}} using with_key, blockers;
    end if;
    for id, queue, state in execute {{key_free.sql}} using with_key loop
        if state = 'look again' then
            insert into sluice.recheck (job_id) values (id);
        else
            return next;
        end if;
    end loop;
end
$function$;
