-- Notes that jobs of a queue have others waiting for them.
-- ?1 queue
insert or ignore into sluice_awaited (queue) values (?1)
