-- Deletes instructions without effect: those that ended an hour ago, those to processes that were deleted, and
-- instructions to work that lift no older instruction.
delete from sluice.instruction i
where i.until < now() - interval '1 hour'
    or i.changed_at < now() - interval '1 hour' and (
        i.scope = 'holder' and not exists (select from sluice.holder h where h.id = i.name)
        or i.wanted = 'work' and not exists (
            select from sluice.instruction o where o.changed_at < i.changed_at and o.wanted <> 'work'))
