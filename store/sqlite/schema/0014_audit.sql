-- 0014 The audit is only added to: seals chain its entries, and triggers refuse to change them.
-- works with programs from: 8

-- The chain over the audit: each seal covers the entries above the one before it, up to `upto`, by level, and says up to
-- which seal the entries of a level are gone by retention. Package audit says what the hashes are of.
create table sluice_audit_seal (
    no              integer primary key check (no > 0),
    at              integer not null,
    upto            integer not null,
    previous        blob    not null,
    notable_entries integer not null,
    notable_hash    blob    not null,
    notable_gone    integer not null,
    notable_keep_ms integer not null check (notable_keep_ms >= 0),
    full_entries    integer not null,
    full_hash       blob    not null,
    full_gone       integer not null,
    full_keep_ms    integer not null check (full_keep_ms >= 0),
    hash            blob    not null
);

-- What a seal covers, entry by entry, so that the one that was changed can be named.
create table sluice_audit_batch (
    seal  integer not null,
    level text    not null check (level in ('notable', 'full')),
    body  blob    not null,
    primary key (seal, level)
);

-- Up to which entry each level is gone by retention, as the last seal says. The level full has what is written only
-- because a queue's `audit` is full.
create view sluice_audit_gone as
select coalesce((select s.upto from sluice_audit_seal s where s.no = l.notable_gone), 0) as notable,
       coalesce((select s.upto from sluice_audit_seal s where s.no = l.full_gone), 0) as full,
       l.notable_gone, l.full_gone
from (select no, notable_gone, full_gone from sluice_audit_seal order by no desc limit 1) l;

create trigger sluice_audit_stays before update on sluice_audit
begin
    select raise(abort, 'sluice_audit: entries of the audit are only added');
end;

create trigger sluice_audit_seal_stays before update on sluice_audit_seal
begin
    select raise(abort, 'sluice_audit_seal: seals of the audit are only added');
end;

create trigger sluice_audit_batch_stays before update on sluice_audit_batch
begin
    select raise(abort, 'sluice_audit_batch: batches of the audit are only added');
end;

create trigger sluice_audit_goes before delete on sluice_audit
when old.seq > coalesce((
    select case when old.object = 'job' and old.event in ('enqueue', 'claim', 'dispatch', 'complete', 'retry', 'release') then g.full else g.notable end
    from sluice_audit_gone g
), 0)
begin
    select raise(abort, 'sluice_audit: entries of the audit are only added; retention deletes those that a seal says are gone');
end;

create trigger sluice_audit_batch_goes before delete on sluice_audit_batch
when old.seal > coalesce((select case old.level when 'full' then g.full_gone else g.notable_gone end from sluice_audit_gone g), 0)
begin
    select raise(abort, 'sluice_audit_batch: batches of the audit are only added; retention deletes those that a seal says are gone');
end;

create trigger sluice_audit_seal_goes before delete on sluice_audit_seal
when old.no >= coalesce((select min(g.notable_gone, g.full_gone) from sluice_audit_gone g), 0)
begin
    select raise(abort, 'sluice_audit_seal: seals of the audit are only added; retention deletes those that no entry needs');
end;
