-- worker: Records that a process is alive, so that `sluice holders` lists it and `why` knows who serves the queues.
-- Call it every 10 s; upkeep forgets a process after an hour without a heartbeat. Obey the answer: null: go on;
-- quiesce: claim nothing and finish your jobs; stop: end after that. Report by mode that you claim nothing: `sluice
-- holders drain` waits for it.
create or replace function sluice.heartbeat(
    holder  text,              -- the name that the process claims with
    queues  text[],            -- the queues that the process claims from
    slots   integer default 1, -- how many jobs the process can run at once
    busy    integer default 0, -- how many jobs it runs now
    version text default '',   -- the version of its program
    mode    text default 'working' -- working, quiesced or stopping
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    queue text;
    answer  text;
begin
    if coalesce(holder, '') = '' or coalesce(queues, '{}') = '{}' then
        perform sluice._invalid('holder and queues', 'they are missing');
    end if;
    perform sluice._check_name('holder', holder, 255);
    perform sluice._check_name('version', version, 255);
    if mode is null or mode <> all ('{working,quiesced,stopping}') then
        perform sluice._invalid('mode', format('%s must be working, quiesced or stopping', coalesce(left(mode, 40), 'null')));
    end if;
    foreach queue in array queues loop
        perform sluice._check_queue('work', queue);
    end loop;
    perform sluice._check_holder(holder);
    if not exists (select from sluice.holder h where h.id = heartbeat.holder)
        and (select count(*) from (select from sluice.holder h where h.role = 'worker' and h.queues && heartbeat.queues limit {{max holders}}) n) >= {{max holders}} then
        perform sluice._invalid('holder', 'so many processes beat for these queues that no more are noted: {{max holders}}');
    end if;
    execute {{heartbeat.sql}} using holder, 'worker', queues, greatest(slots, 0), greatest(busy, 0), coalesce(version, ''), '', true,
        {{protocol}}, mode into answer;
    return nullif(answer::json ->> 'wanted', 'work');
end
$function$;
