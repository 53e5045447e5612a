-- 0022 Which processes count what they do for the statistics.
-- works with programs from: 8
-- Older programs do not say that they count.

alter table sluice_holder add column counts integer not null default 0 check (counts in (0, 1));
