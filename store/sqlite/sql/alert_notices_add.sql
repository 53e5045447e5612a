-- Notes for every receiver what it is to be told.
-- ?1 rule   ?2 queue   ?3 message (JSON)   ?4 now
insert into sluice_alert_notice (receiver, rule, queue, message, created_at, due_at)
select name, ?1, ?2, ?3, ?4, ?4 from sluice_alert_receiver order by name
