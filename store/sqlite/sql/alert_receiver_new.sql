-- Whether a receiver of alerts was seen lately, or has something to be told.
-- ?1 name   ?2 seen after   ?3 now
select exists (select 1 from sluice_alert_receiver where name = ?1 and seen > ?2),
       exists (select 1 from sluice_alert_notice where receiver = ?1 and due_at <= ?3)
