-- Stores a new job, or nothing if its id is taken.
-- ?1 id   ?2 queue   ?3 tenant   ?4 priority   ?5 key or null   ?6 payload   ?7 labels as JSON or null
-- ?8 max_attempts or null   ?9 created_at   ?10 expires_at or null
insert into sluice_job (id, queue, tenant, priority, key, payload, labels, max_attempts, created_at, expires_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
on conflict (id) do nothing
