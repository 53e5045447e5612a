-- Adds a seal, unless a seal with its number exists.
-- ?1 no   ?2 at   ?3 upto   ?4 previous   ?5 notable entries   ?6 notable hash   ?7 notable gone   ?8 notable keep ms
-- ?9 full entries   ?10 full hash   ?11 full gone   ?12 full keep ms   ?13 hash
insert into sluice_audit_seal (no, at, upto, previous, notable_entries, notable_hash, notable_gone, notable_keep_ms, full_entries, full_hash, full_gone, full_keep_ms, hash)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
on conflict (no) do nothing
