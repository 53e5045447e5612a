-- Lets one upkeep at a time add up changes. The upsert locks the row even if another transaction has just made it; a
-- select for update would not see such a row.
insert into sluice.batch_counted default values on conflict (one) do update set one = true
