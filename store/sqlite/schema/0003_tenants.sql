-- 0003 Tenants with limits and shares: jobs wait in a line for each tenant of a queue that tells its tenants apart.
-- works with programs from: 3
-- Those before do not find jobs by the new indexes. Stop them first.

alter table sluice_queue add column fair integer not null default 0 check (fair in (0, 1));
alter table sluice_queue add column tenant_capacity integer not null default 0 check (tenant_capacity between 0 and 1000000);
alter table sluice_queue add column tenant_rate real not null default 0 check (tenant_rate between 0 and 1000000);
alter table sluice_queue add column tenant_burst integer not null default 0 check (tenant_burst between 0 and 1000000);

-- What a queue, or every queue (''), grants to a tier or to a tenant. Null says nothing; the nearest that says
-- something counts.
create table sluice_tenant_limit (
    queue        text    not null default '',
    tier         text    not null default '',
    tenant       text    not null default '',
    capacity     integer check (capacity between 0 and 1000000),
    rate         real    check (rate between 0 and 1000000),
    burst        integer check (burst between 0 and 1000000),
    weight       integer check (weight between 1 and 1000),
    until        integer,
    paused       integer not null default 0 check (paused in (0, 1)),
    paused_until integer,
    version      integer not null default 1,
    changed_at   integer not null,
    changed_by   text    not null default '',
    reason       text    not null default '',
    says         integer not null generated always as -- what says nothing puts no queue in turns
        (capacity is not null or rate is not null or burst is not null or weight is not null or paused) stored,
    primary key (queue, tier, tenant),
    check ((tier = '') <> (tenant = ''))
) without rowid;
create index sluice_tenant_limit_says on sluice_tenant_limit (queue) where says;
create index sluice_tenant_limit_tier on sluice_tenant_limit (tier, queue) where tier <> '';
create index sluice_tenant_limit_tenant on sluice_tenant_limit (tenant, queue) where tenant <> '';

-- A job waits either in its queue or in its tenant's line. Claims move it over where the queue's settings have
-- changed.
alter table sluice_live add column in_line integer not null default 0;
drop index sluice_live_claim;
create index sluice_live_claim on sluice_live (queue, priority, due_at)
    where state = 'queued' and blocked_by is null and in_line = 0;
create index sluice_live_line on sluice_live (queue, tenant, priority, due_at)
    where state = 'queued' and blocked_by is null and in_line = 1;
create index sluice_live_line_due on sluice_live (queue, due_at)
    where state = 'queued' and blocked_by is null and in_line = 1;
create index sluice_live_held on sluice_live (queue, tenant)
    where state in ('claimed', 'dispatched') and tenant <> '';

-- One row per queue and tenant. Active lines are served in the order of turns; the others sleep until wake_at, or
-- until the triggers below wake them.
create table sluice_line (
    queue     text    not null,
    tenant    text    not null,
    turn      real    not null,
    jobs      integer not null default 0, -- bit 1 to 10: of which priorities jobs may wait
    active    integer not null default 1,
    at_capacity      integer not null default 0, -- it sleeps until a job of the tenant ends
    wake_at   integer,
    tokens    real    not null default 0,
    filled_at integer,
    primary key (queue, tenant)
) without rowid;
create index sluice_line_turn on sluice_line (queue, turn, tenant) where active = 1;
create index sluice_line_wake on sluice_line (queue, wake_at) where active = 0 and wake_at is not null;
create index sluice_line_at_capacity on sluice_line (queue) where at_capacity = 1;

-- Before this turn and tenant there is no active line.
alter table sluice_flow add column turn real not null default 0;
alter table sluice_flow add column tenant text not null default '';

-- A turn right behind the mark; of very high turns the fixed step would be lost by rounding.
create view sluice_flow_behind as
select queue, max(turn + 1.0 / 1048576, turn * 1.0000000000000003) as behind from sluice_flow;

-- What wakes a line is written into these views. A line's turn is then behind those that are active: time in which
-- it had nothing to do, or was held back, is no credit.
-- A line whose jobs are due more than a second later sleeps until then.
create view sluice_line_work as select queue, tenant, 0 as priority, 0 as due_at from sluice_line where false;
create trigger sluice_line_work_in instead of insert on sluice_line_work
begin
    insert into sluice_line (queue, tenant, turn, jobs, active, wake_at)
    select new.queue, new.tenant, coalesce((select f.behind from sluice_flow_behind f where f.queue = new.queue), 1.0 / 1048576), 1 << new.priority,
           later is null, later
    from (select iif(new.due_at > (julianday('now') - 2440587.5) * 86400000000 + 1000000, new.due_at, null) as later)
    where true
    on conflict (queue, tenant) do update
    set jobs = jobs | excluded.jobs,
        turn = iif(active = 1 or at_capacity = 1 or excluded.active = 0, turn, max(turn, excluded.turn)),
        active = iif(at_capacity = 1, 0, max(active, excluded.active)),
        wake_at = iif(at_capacity = 1, wake_at, iif(max(active, excluded.active) = 1, null, min(coalesce(wake_at, excluded.wake_at), excluded.wake_at)))
    where active = 0 or jobs & excluded.jobs = 0;
end;

create view sluice_line_room as select queue, tenant from sluice_line where false;
create trigger sluice_line_room_in instead of insert on sluice_line_room
begin
    update sluice_line
    set active = 1, at_capacity = 0, wake_at = null,
        turn = max(turn, coalesce((select f.behind from sluice_flow_behind f where f.queue = new.queue), 1.0 / 1048576))
    where queue = new.queue and tenant = new.tenant and at_capacity = 1;
end;

create view sluice_line_terms as select queue, tenant from sluice_line where false; -- '': of all
create trigger sluice_line_terms_in instead of insert on sluice_line_terms
begin
    update sluice_line
    set active = 1, at_capacity = 0, wake_at = null,
        turn = max(turn, coalesce((select f.behind from sluice_flow_behind f where f.queue = sluice_line.queue), 1.0 / 1048576))
    where active = 0 and (jobs <> 0 or at_capacity = 1) and (new.queue = '' or queue = new.queue) and (new.tenant = '' or tenant = new.tenant);
end;

create trigger sluice_live_new after insert on sluice_live
when new.in_line = 1 and new.blocked_by is null and new.state = 'queued'
begin
    insert into sluice_line_work values (new.queue, new.tenant, new.priority, new.due_at);
end;

create trigger sluice_live_back after update of state, blocked_by, due_at, in_line on sluice_live
when new.in_line = 1 and new.blocked_by is null and new.state = 'queued'
begin
    insert into sluice_line_work values (new.queue, new.tenant, new.priority, new.due_at);
end;

create trigger sluice_live_room after update of state on sluice_live
when old.tenant <> '' and old.state in ('claimed', 'dispatched') and new.state not in ('claimed', 'dispatched')
begin
    insert into sluice_line_room values (old.queue, old.tenant);
end;

create trigger sluice_live_end after delete on sluice_live
when old.tenant <> '' and old.state in ('claimed', 'dispatched')
begin
    insert into sluice_line_room values (old.queue, old.tenant);
end;

-- What limits and settings say counts at once.
create trigger sluice_tenant_limit_new after insert on sluice_tenant_limit
begin
    insert into sluice_line_terms values (new.queue, new.tenant);
end;

create trigger sluice_tenant_limit_changed after update on sluice_tenant_limit
begin
    insert into sluice_line_terms values (new.queue, new.tenant);
end;

create trigger sluice_tenant_limit_gone after delete on sluice_tenant_limit
begin
    insert into sluice_line_terms values (old.queue, old.tenant);
end;

create trigger sluice_tenant_new after insert on sluice_tenant
begin
    insert into sluice_line_terms values ('', new.name);
end;

create trigger sluice_tenant_changed after update of tier on sluice_tenant
begin
    insert into sluice_line_terms values ('', new.name);
end;

create trigger sluice_tenant_gone after delete on sluice_tenant
begin
    insert into sluice_line_terms values ('', old.name);
end;

create trigger sluice_queue_changed after update of tenant_capacity, tenant_rate, tenant_burst on sluice_queue
begin
    insert into sluice_line_terms values (new.name, '');
end;
