-- Lists seals of the audit in order.
-- ?1 from   ?2 limit
select no, at, upto, previous, notable_entries, notable_hash, notable_gone, notable_keep_ms, full_entries, full_hash, full_gone, full_keep_ms, hash
from sluice_audit_seal
where no >= ?1
order by no
limit ?2 + 0
