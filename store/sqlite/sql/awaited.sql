-- Records that other jobs wait for jobs of a queue.
-- ?1 queue
insert or ignore into sluice_awaited (queue) values (?1)
