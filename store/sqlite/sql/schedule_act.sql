-- Lists the fires that an act has made.
-- ?1 act   ?2 name of the schedule
select after from sluice_audit where act_id = ?1 and object = 'schedule' and name = ?2 and event = 'fire'
