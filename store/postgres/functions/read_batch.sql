-- producer: Returns a batch with the counts of its jobs; no row if the batch is not stored. A role reads
-- batches that it opened, and those whose callbacks are all in queues in which it may produce.
create or replace function sluice.read_batch(
    batch_id uuid
) returns table (
    name         text,
    parent       uuid,        -- the batch around this batch
    total        bigint,      -- jobs that were added
    completed    bigint,
    dead         bigint,
    cancelled    bigint,
    created_at   timestamptz,
    closed_at    timestamptz, -- when the batch was closed; null: it is open
    completed_at timestamptz, -- when all jobs had ended; null: not yet
    succeeded_at timestamptz, -- when all jobs had completed; null: not yet
    died_at      timestamptz, -- when the first job died; null: none yet
    paused       text         -- why the batch is paused; empty: it is not paused
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    row record;
begin
    if not sluice._owns_batch(batch_id) then
        return;
    end if;
    for row in execute {{batch.sql}} using batch_id loop
        name := row.name; parent := row.parent; total := row.total; completed := row.completed; dead := row.dead; cancelled := row.cancelled;
        created_at := row.created_at; closed_at := row.closed_at; completed_at := row.completed_at; succeeded_at := row.succeeded_at;
        died_at := row.died_at; paused := row.paused;
        return next;
    end loop;
end
$function$;
