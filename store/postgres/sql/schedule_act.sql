-- Lists the fires that an act has made.
-- $1 uuid act   $2 text name of the schedule
select after::text from sluice.audit
where act_id = $1::uuid and coalesce(object, '') = 'schedule' and coalesce(name, '') = $2::text and event = 'fire'
