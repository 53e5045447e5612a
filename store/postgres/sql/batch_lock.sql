-- Lets one upkeep at a time add up changes.
with first as (
    insert into sluice.batch_counted default values on conflict (one) do nothing
)
select one from sluice.batch_counted for update
