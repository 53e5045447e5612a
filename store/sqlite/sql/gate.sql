-- Whether a queue is paused, and whether it audits every move.
-- ?1 queue
select paused, audit = 'full' from sluice_queue where name = ?1
