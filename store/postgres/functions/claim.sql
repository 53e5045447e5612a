-- worker: Claims due jobs of one queue, or of several queues in turn: the lowest priority number first, then the
-- longest due. Each claim is a lease: renew it while you work, and pass its token with each write. A claim never
-- exceeds the limits of the queue and of its tenants. An unknown queue has no jobs. Call this function in a transaction
-- of its own, which is read committed if a queue has limits.
create or replace function sluice.claim(
    queues        text[],                        -- the queues to claim from
    holder        text,                          -- the name of the claiming process: host:pid:nonce
    batch         integer default 1,             -- the most jobs over all queues, from 1 to 1000; of each queue at most its setting batch
    lease_seconds double precision default null, -- the lease without renewal; null: the queue's setting lease
    claim_token   uuid default null,             -- the token of the claim; null: a new one. A repeated claim with the same token returns the same jobs
    reclaim       boolean default true,          -- if too few jobs are due, take back jobs whose lease ran out, as upkeep does
    ageing        double precision default null  -- the share of claims that begin with another priority than 1; null: the queue's setting
) returns table (
    id            uuid,
    queue         text,
    token         uuid,        -- for renew, complete, fail and the others
    attempt       integer,     -- the number of this attempt, from 1
    attempts_left integer,     -- 1: if this attempt fails, the job is dead
    payload       json,
    due_at        timestamptz,
    lease_until   timestamptz,
    start_at      timestamptz, -- start the job at this instant at the earliest: the queue's setting jitter
    tenant        text,
    key           text,
    order_key     text,
    priority      integer,
    generation    integer,
    attempts      integer,     -- failed attempts
    releases      integer,
    recoveries    integer,
    max_attempts  integer,     -- of the job itself; null: the queue's setting counts
    labels        jsonb,
    checkpoint    json,        -- as the function checkpoint stored it
    error         text,        -- of the last failed attempt
    claimed_at    timestamptz,
    created_at    timestamptz,
    expires_at    timestamptz,
    after         uuid[],
    after_failure text,
    timeout_ms    bigint,      -- the most time for the attempt in ms, of the job itself; null: the queue's setting counts
    batch_id      uuid,        -- the batch of the job
    limit_key     text,        -- the value that limits per key count by
    cost          integer      -- the units that limits by cost count; null: 1
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    names    text[] := array(select g.name from unnest(queues) with ordinality as g(name, n) group by g.name order by min(g.n));
    of_token uuid := coalesce(claim_token, sluice._random());
    settings record;
    row      record;
    left_over integer := batch;
    share    integer;
    got      integer;
    got_of   integer[] := '{}';
    more     boolean[] := '{}';
    got_from text[] := '{}';
    tenants  text[] := '{}';
    waits    bigint[] := '{}';
begin
    if coalesce(names, '{}') = '{}' or cardinality(names) > 100 then
        perform sluice._invalid('queues', format('%s queues are not 1 to 100', coalesce(cardinality(names), 0)));
    elsif coalesce(holder, '') = '' then
        perform sluice._invalid('holder', 'it is missing; name your process, such as host:pid:nonce');
    elsif batch is null or batch < 1 or batch > 1000 then
        perform sluice._invalid('batch', format('%s must be from 1 to 1000', coalesce(batch::text, 'null')));
    end if;
    perform sluice._check_name('holder', holder, 255);
    perform sluice._check_said('reclaim', reclaim);
    if claim_token = '00000000-0000-0000-0000-000000000000' then
        perform sluice._invalid('claim_token', 'it is zero; leave it out, or draw one');
    elsif not (ageing >= 0 and ageing <= 1) then
        perform sluice._invalid('ageing', format('%s must be from 0 to 1', ageing));
    end if;
    foreach queue in array names loop
        perform sluice._check_queue('work', queue);
        perform sluice._check_runner(queue);
    end loop;
    perform sluice._recheck();
    if claim_token is not null then
        for row in select b.* from sluice._claimed_before(names, of_token, claim.holder) b loop
            left_over := 0;
            select q.jitter_ms, q.max_attempts as attempts into settings from sluice.queue q where q.name = row.queue;
            select {{answer}} into {{answer names}};
            return next;
        end loop;
    end if;
    -- A number drawn from the token decides which queue comes first, so that no queue is always the last.
    share := ('x' || substr(replace(of_token::text, '-', ''), 26, 7))::bit(28)::integer % cardinality(names);
    names := names[share + 1:] || names[:share];
    begin
        perform sluice._lock_limits(names);
    exception when lock_not_available then
        return;
    end;
    for round in 1..2 loop
        for n in 1..cardinality(names) loop
            exit when left_over <= 0;
            queue := names[n];
            continue when round = 2 and not coalesce(more[n], false);
            select q.batch, q.ageing, q.jitter_ms, q.max_attempts as attempts, q.interval_ms into settings from sluice.queue q where q.name = queue;
            continue when round = 1 and not sluice._at_pace(queue, holder, settings.interval_ms);
            share := case when round = 1 then ceil(left_over::numeric / (cardinality(names) - n + 1)) else left_over end;
            share := least(share, coalesce(nullif(settings.batch, 0), batch) - coalesce(got_of[n], 0));
            continue when share <= 0;
            got := 0;
            for try in 1..2 loop
                for row in select names[n] as queue, of_token as token, c.* from sluice._claim(names[n], share - got, holder, of_token,
                    sluice._lease(names[n], lease_seconds), sluice._priorities(of_token, coalesce(claim.ageing, settings.ageing, {{ageing}})), false) c
                loop
                    continue when row.id is null;
                    got := got + 1;
                    got_from := got_from || names[n];
                    tenants := tenants || row.tenant;
                    waits := waits || greatest(extract(epoch from row.claimed_at - row.due_at) * 1000000, 0)::bigint;
                    select {{answer}} into {{answer names}};
                    return next;
                end loop;
                exit when got = share or not reclaim or round = 2 or try = 2;
                exit when (select r.requeued from sluice._recover(names[n], share - got, holder) r) = 0;
            end loop;
            left_over := left_over - got;
            got_of[n] := coalesce(got_of[n], 0) + got;
            more[n] := got = share;
        end loop;
    end loop;
    if got_from <> '{}' then
        perform sluice._count('claim', got_from, tenants, waits);
    end if;
end
$function$;
