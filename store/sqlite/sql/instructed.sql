-- Reads the instruction for a holder: the newest instruction that selects the holder and has not ended.
-- ?1 holder   ?2 its version   ?3 now
select scope, name, wanted, until, changed_at, changed_by, reason, version, act_id
from sluice_instruction
where (scope = 'all' or scope = 'holder' and name = ?1 or scope = 'version' and name = ?2) and (until is null or until > ?3)
order by changed_at desc
limit 1
