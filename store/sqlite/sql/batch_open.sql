-- Stores a new batch.
-- ?1 id   ?2 name   ?3 parent or null   ?4 callbacks   ?5 by whom   ?6 why it is paused (empty: not paused)   ?7 now
insert into sluice_batch (id, name, parent, callbacks, created_by, paused, created_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
