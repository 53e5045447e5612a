-- Returns the last seal of the audit.
select no, at, upto, previous, notable_entries, notable_hash, notable_gone, notable_keep_ms, full_entries, full_hash, full_gone, full_keep_ms, hash
from sluice.audit_seal
order by no desc
limit 1
