-- Stores the leader of a task.
-- ?1 task   ?2 holder   ?3 since   ?4 until
insert into sluice_lead (task, holder, since, until) values (?1, ?2, ?3, ?4)
on conflict (task) do update set holder = excluded.holder, since = excluded.since, until = excluded.until
