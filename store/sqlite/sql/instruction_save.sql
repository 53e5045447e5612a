-- Stores an instruction, whose version was read in the same transaction.
-- ?1 scope   ?2 name   ?3 wanted   ?4 until   ?5 now   ?6 actor   ?7 reason   ?8 version   ?9 act
insert into sluice_instruction (scope, name, wanted, until, changed_at, changed_by, reason, version, act_id)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
on conflict (scope, name) do update set wanted = excluded.wanted, until = excluded.until, changed_at = excluded.changed_at,
    changed_by = excluded.changed_by, reason = excluded.reason, version = excluded.version, act_id = excluded.act_id
