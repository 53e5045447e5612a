-- Deletes instructions without effect: those that ended an hour ago, those to processes that were deleted, and
-- instructions to work that lift no older instruction.
-- ?1 an hour ago
delete from sluice_instruction as i
where i.until < ?1
    or i.changed_at < ?1 and (
        i.scope = 'holder' and not exists (select 1 from sluice_holder h where h.id = i.name)
        or i.wanted = 'work' and not exists (
            select 1 from sluice_instruction o where o.changed_at < i.changed_at and o.wanted <> 'work'))
