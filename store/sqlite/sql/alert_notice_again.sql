-- Puts off what a receiver could not be told.
-- ?1 seq   ?2 when to try again   ?3 why
update sluice_alert_notice set due_at = ?2, error = ?3 where seq = ?1
