-- Lets one upkeep at a time add up changes. The update locks the row also if another transaction has only just made it: a query for
-- update would not see it, and lock nothing.
insert into sluice.batch_counted default values on conflict (one) do update set one = true
