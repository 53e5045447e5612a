-- worker: Returns the results of a node of a flow, for a job that runs after the node. A map gives a row per element,
-- in order; any other node gives one row. A job can read only the nodes of its own `after`; a result must hand on the
-- data that later nodes need.
create or replace function sluice.node_results(
    job_id uuid, -- the job that the caller works on
    node   text  -- the name of a node that the job runs after
) returns table (
    element integer, -- the place in the array of a map, from 0; null: the node is a job
    state   text,    -- completed, dead or cancelled; or unfinished; or unknown, if upkeep has deleted the job
    result  json,    -- null: none
    error   text     -- the last failure, or a note that the result is no longer kept; null: none
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    job     record;
    of_flow uuid;
    of_node uuid;
    found   record;
begin
    if job_id is null or node is null then
        perform sluice._invalid(case when job_id is null then 'job_id' else 'node' end, 'it is missing');
    end if;
    select j.queue, j.after, j.labels ->> 'flow' as flow into job from sluice.job j where j.id = job_id;
    if job.queue is null or not sluice._may('work', job.queue) then
        raise exception using errcode = 'SL005', message = format('job %s is not known', job_id), hint = 'It may have been pruned, or lie in another database.';
    end if;
    if job.flow ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' then
        of_flow := job.flow;
        of_node := sluice._flow_id(of_flow, node);
    end if;
    if of_node is null or not coalesce(of_node = any (job.after), false) then
        raise exception using errcode = 'SL005', message = format('job %s runs after no node %L of its flow', job_id, left(node, 80)),
            hint = 'Name a node of its own `after`.';
    end if;
    select e.* into found from sluice._node_end(of_node) e;
    if found.queue = 'sluice.flow.map' and found.state = 'completed' then
        for k in 0..(found.result ->> 'elements')::integer - 1 loop
            element := k;
            select e.state, e.result, e.error into state, result, error from sluice._node_end(sluice._flow_element_id(of_flow, node, element)) e;
            return next;
        end loop;
        return;
    end if;
    state := found.state; result := found.result; error := found.error;
    if found.queue = 'sluice.flow.map' then
        result := null;
    end if;
    return next;
end
$function$;
