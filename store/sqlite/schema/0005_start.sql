-- 0005 How many jobs a claim takes, how often, how long before they are due, and how their starts are spread.
-- works with programs from: 3
-- Those of schema 4 and before do not keep these settings.

alter table sluice_queue add column batch integer not null default 0 check (batch between 0 and 10000);
alter table sluice_queue add column interval_ms integer not null default 0 check (interval_ms between 0 and 86400000);
alter table sluice_queue add column lead_ms integer not null default 0 check (lead_ms between 0 and 86400000);
alter table sluice_queue add column jitter_ms integer not null default 0 check (jitter_ms between 0 and 86400000);
