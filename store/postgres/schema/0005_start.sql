-- 0005 How many jobs a claim takes, how often, how long before they are due, and how their starts are spread.
-- locks: queue for a moment.
-- works with programs from: 3
-- Those of schema 4 and before do not keep these settings.

alter table sluice.queue
    add column batch       bigint not null default 0 check (batch between 0 and 10000),
    add column interval_ms bigint not null default 0 check (interval_ms between 0 and 86400000),
    add column lead_ms     bigint not null default 0 check (lead_ms between 0 and 86400000),
    add column jitter_ms   bigint not null default 0 check (jitter_ms between 0 and 86400000);
