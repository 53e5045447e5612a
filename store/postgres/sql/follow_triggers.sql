-- Lists the triggers of followers as TABLE.TRIGGER.
select t.on_table || '.follow_' || f.name || '_' || t.name
from sluice.follower f
cross join (values ('live', 'moved'), ('live', 'requeued'), ('done', 'ended')) as t(on_table, name)
