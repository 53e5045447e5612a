-- 0003 Tenants with limits and shares: jobs wait in a line for each tenant of a queue that tells its tenants apart.
-- locks: queue and flow for a moment; live for as long as its new indexes take.
-- works with programs from: 3
-- Those before do not find jobs by the new indexes. Stop them first.

alter table sluice.queue
    add column fair            boolean          not null default false,
    add column tenant_capacity bigint           not null default 0 check (tenant_capacity between 0 and 1000000),
    add column tenant_rate     double precision not null default 0 check (tenant_rate between 0 and 1000000),
    add column tenant_burst    bigint           not null default 0 check (tenant_burst between 0 and 1000000);

-- What a queue, or every queue (''), grants to a tier or to a tenant. Null says nothing; the nearest that says
-- something counts.
create table sluice.tenant_limit (
    queue        text             not null default '',
    tier         text             not null default '',
    tenant       text             not null default '',
    capacity     bigint           check (capacity between 0 and 1000000),
    rate         double precision check (rate between 0 and 1000000),
    burst        bigint           check (burst between 0 and 1000000),
    weight       bigint           check (weight between 1 and 1000),
    until        timestamptz,
    paused       boolean          not null default false,
    paused_until timestamptz,
    version      bigint           not null default 1,
    changed_at   timestamptz      not null default now(),
    changed_by   text             not null default '',
    reason       text             not null default '',
    says         boolean          not null generated always as -- what says nothing puts no queue in turns
        (capacity is not null or rate is not null or burst is not null or weight is not null or paused) stored,
    primary key (queue, tier, tenant),
    check ((tier = '') <> (tenant = ''))
);
create index tenant_limit_says on sluice.tenant_limit (queue) where says;
create index tenant_limit_tier on sluice.tenant_limit (tier, queue) where tier <> '';
create index tenant_limit_tenant on sluice.tenant_limit (tenant, queue) where tenant <> '';

-- A job waits either in its queue or in its tenant's line. Claims move it over where the queue's settings have
-- changed.
alter table sluice.live add column in_line boolean not null default false;
drop index sluice.live_claim;
create index live_claim on sluice.live (queue, priority, due_at, id)
    where state = 'queued' and blocked_by is null and not in_line;
create index live_line on sluice.live (queue, tenant, priority, due_at, id)
    where state = 'queued' and blocked_by is null and in_line;
create index live_line_due on sluice.live (queue, due_at)
    where state = 'queued' and blocked_by is null and in_line;
create index live_held on sluice.live (queue, tenant, claimed_at)
    where state in ('claimed', 'dispatched') and tenant <> '';

-- One row per queue and tenant, written by claims alone, which have the lock of the queue's flow. Active lines are
-- served in the order of turns; the others sleep until wake_at, or until a hint wakes them. There is no unique
-- index: it would be walked through every version of a row that an old transaction keeps. The newest has the
-- highest version.
create table sluice.line (
    queue        text             not null,
    tenant       text             not null,
    version      bigint           not null,
    turn         double precision not null,
    jobs         integer          not null, -- bit 1 to 10: of which priorities jobs may wait
    active       boolean          not null,
    at_capacity  boolean          not null default false, -- it sleeps until a job of the tenant ends
    wake_at      timestamptz,
    tokens       double precision not null default 0,
    filled_at    timestamptz,
    counted_from timestamptz -- what the tenant has in flight was not claimed before; null: that is not known
);
create index line_tenant on sluice.line (queue, tenant, version desc);
create index line_turn on sluice.line (queue, turn, tenant collate "C") where active; -- as Go compares them
create index line_wake on sluice.line (queue, wake_at) where not active and wake_at is not null;

-- What came into lines, and what left flight. Anybody adds to it and waits for nobody; claims take it in.
create table sluice.hint (
    queue  text        not null,
    at     timestamptz not null default clock_timestamp(),
    tenant text        not null,
    jobs   integer     not null, -- bit 1 to 10: of which priorities
    due_at timestamptz,          -- when the first of them is due
    room   boolean     not null default false, -- whether something left flight
    terms  boolean     not null default false  -- whether the tenant's limits have changed
);
create index hint_at on sluice.hint (queue, at);

-- Before this turn and tenant there is no active line, and no line sleeps until an instant before wakes_from.
alter table sluice.flow
    add column turn       double precision not null default 0,
    add column tenant     text             not null default '',
    add column wakes_from timestamptz,
    add column turns_since timestamptz; -- since when the queue serves its tenants in turns

-- What limits and settings say counts at once: claims look at the lines anew.
create function sluice.terms_changed() returns trigger language plpgsql set search_path = pg_catalog as $$
declare
    of_queue  text := '';
    of_tenant text := '';
begin
    if tg_table_name = 'queue' then
        of_queue := new.name;
    elsif tg_table_name = 'tenant' then
        of_tenant := case when tg_op = 'DELETE' then old.name else new.name end;
    else
        of_queue := case when tg_op = 'DELETE' then old.queue else new.queue end;
        of_tenant := case when tg_op = 'DELETE' then old.tenant else new.tenant end;
    end if;
    if of_tenant <> '' then -- not by its lines: a claim may be making one in this moment, which cannot be seen yet
        insert into sluice.hint (queue, tenant, jobs, terms)
        select f.queue, of_tenant, 0, true
        from sluice.flow f
        where of_queue = '' or f.queue = of_queue;
        return null;
    end if;
    insert into sluice.hint (queue, tenant, jobs, terms)
    select l.queue, l.tenant, 0, true
    from sluice.line l
    where of_queue = '' or l.queue = of_queue;
    return null;
end
$$;
revoke all on function sluice.terms_changed() from public;
create trigger terms_changed after insert or update or delete on sluice.tenant_limit
    for each row execute function sluice.terms_changed();
create trigger terms_changed after insert or update of tier or delete on sluice.tenant
    for each row execute function sluice.terms_changed();
create trigger terms_changed after update on sluice.queue for each row
    when (new.tenant_capacity <> old.tenant_capacity or new.tenant_rate <> old.tenant_rate or new.tenant_burst <> old.tenant_burst)
    execute function sluice.terms_changed();
