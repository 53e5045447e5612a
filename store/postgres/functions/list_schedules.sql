-- operator: Lists the schedules of the queues in which the caller may operate, by name.
create or replace function sluice.list_schedules(
    queue text default null,    -- only schedules of this queue; null: of all queues
    after text default null,    -- only schedules after this name, such as the last of a page; null: from the first
    batch integer default 1000  -- the most rows, from 1 to 10000
) returns table (
    name       text,
    queue_name text,
    definition json,        -- when the schedule fires, and which job a fire makes
    next_at    timestamptz, -- the next fire; null: there is none
    paused     boolean,
    note       text,        -- why the schedule is paused; null: nobody gave a reason
    fired      integer,     -- jobs that the schedule has made
    skipped    integer,     -- fires while an earlier job was unfinished
    missed     integer,     -- fires that were too late
    refused    integer      -- fires whose job the queue did not take
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._check_size(batch);
    if queue is not null then
        perform sluice._check_queue('operate', queue);
    end if;
    return query
        select s.name, s.queue, s.definition::json, s.next_at, coalesce((s.definition::json ->> 'paused')::boolean, false), s.definition::json ->> 'note',
               coalesce((s.progress::json ->> 'fired')::integer, 0), coalesce((s.progress::json ->> 'skipped')::integer, 0),
               coalesce((s.progress::json ->> 'missed')::integer, 0), coalesce((s.progress::json ->> 'refused')::integer, 0)
        from sluice.schedule s
        where (list_schedules.queue is null or s.queue = list_schedules.queue) and s.name > coalesce(after, '')
          and (list_schedules.queue is not null or sluice._may('operate', s.queue))
        order by s.name
        limit batch;
end
$function$;
