-- Returns whether a process asked for a receiver of alerts lately.
-- ?1 name   ?2 seen after
select exists (select 1 from sluice_alert_receiver where name = ?1 and seen > ?2)
