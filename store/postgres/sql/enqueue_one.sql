-- Stores one new job without a key, an order, an `after`, a tenant queue and an audit entry. It costs half as much as
-- enqueue for one job. If the id is taken, the statement stores nothing and returns the id. It needs no planner
-- settings, because it walks only primary keys.
-- $1 uuid id   $2 text queue   $3 text tenant   $4 smallint priority   $5 bytea payload   $6 text labels as JSON (null: none)
-- $7 smallint max_attempts (null: the queue's)   $8 timestamptz due_at (null: now)   $9 interval delay (null: none)
-- $10 timestamptz expires_at   $11 boolean whether the queue was stored when its settings were read; if the queue is gone,
-- the statement stores nothing and returns a null   $12 text the signal that wakes other processes at the commit (null: none)
with stored as (
    insert into sluice.job (id, queue, tenant, priority, payload, labels, max_attempts, expires_at)
    select $1::uuid, $2::text, $3::text, $4::smallint, $5::bytea, $6::text::jsonb, $7::smallint, $10::timestamptz
    where not $11::boolean or exists (select from sluice.queue q where q.name = $2::text)
    on conflict (id) do nothing
    returning id
), waiting as (
    insert into sluice.live (id, queue, tenant, priority, due_at, expires_at)
    select s.id, $2::text, $3::text, $4::smallint, coalesce($8::timestamptz, statement_timestamp() + $9::interval, now()), $10::timestamptz
    from stored s
    returning case when $12::text is not null then pg_notify('sluice', $12::text) end
)
select case when not $11::boolean or exists (select from sluice.queue q where q.name = $2::text) then $1::uuid end
where not exists (select from stored)
