-- Forgets instructions that cannot count any more: ended ones, those to processes that are forgotten, and those to work that
-- are the oldest and so lift nothing.
delete from sluice.instruction i
where i.until < now() - interval '1 hour'
    or i.changed_at < now() - interval '1 hour' and (
        i.scope = 'holder' and not exists (select from sluice.holder h where h.id = i.name)
        or i.wanted = 'work' and not exists (
            select from sluice.instruction o where o.changed_at < i.changed_at and o.wanted <> 'work'))
