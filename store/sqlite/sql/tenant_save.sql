-- Stores a tenant, whose version was read in the same transaction.
-- ?1 name   ?2 tier   ?3 version   ?4 now   ?5 actor   ?6 reason
insert into sluice_tenant (name, tier, version, changed_at, changed_by, reason) values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (name) do update set tier = excluded.tier, version = excluded.version, changed_at = excluded.changed_at,
    changed_by = excluded.changed_by, reason = excluded.reason
