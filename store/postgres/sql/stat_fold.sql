-- Lets one transaction at a time add up counts, and reads the server's clock.
insert into sluice.stat_fold (at) values (now())
on conflict (one) do update set at = excluded.at
returning now()
