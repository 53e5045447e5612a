-- Keeps others from adding up at the same time, until the transaction ends, and tells the server's clock.
insert into sluice.stat_fold (at) values (now())
on conflict (one) do update set at = excluded.at
returning now()
