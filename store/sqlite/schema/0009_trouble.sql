-- 0009 What keeps a holder from its work, so that people see it.
-- works with programs from: 8

alter table sluice_holder add column trouble text not null default '';
