-- Lists the instructions to processes, the newest first.
select scope, name, wanted, until, changed_at, changed_by, reason, version, act_id
from sluice_instruction
order by changed_at desc
