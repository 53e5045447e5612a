-- Stores a silence that is not stored yet.
-- ?1 id   ?2 rule   ?3 queue   ?4 created_at   ?5 until   ?6 by whom   ?7 reason
insert into sluice_alert_silence (id, rule, queue, created_at, until, made_by, reason) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
