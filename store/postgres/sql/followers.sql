-- Lists the followers, and whether all triggers exist that run their statements.
-- $1 text name, empty: all
-- owned: this role owns the trigger function, which runs with the role's rights. path: the search path of the function.
select f.name, f.queue, f.states, f.statement,
       (select count(*) from pg_catalog.pg_trigger t
        where t.tgrelid = 'sluice.live'::regclass and t.tgname in ('follow_' || f.name || '_moved', 'follow_' || f.name || '_requeued')
           or t.tgrelid = 'sluice.done'::regclass and t.tgname = 'follow_' || f.name || '_ended') = 3 as whole,
       coalesce(p.prosrc, '') as live_body, coalesce(d.prosrc, '') as done_body,
       coalesce(pg_catalog.pg_get_userbyid(p.proowner) = current_user, false) as owned,
       coalesce((select substr(c, length('search_path=') + 1) from unnest(p.proconfig) c where c like 'search\_path=%'), '') as path
from sluice.follower f
left join pg_catalog.pg_proc p on p.pronamespace = 'sluice'::regnamespace and p.proname = 'follow_' || f.name || '_live'
left join pg_catalog.pg_proc d on d.pronamespace = 'sluice'::regnamespace and d.proname = 'follow_' || f.name || '_done'
where $1::text in ('', f.name)
order by f.name
