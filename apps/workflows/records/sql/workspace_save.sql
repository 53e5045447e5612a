-- Stores a workspace, or changes its name and plan.
-- $1 id, $2 name, $3 plan, $4 now
insert into workspaces (id, name, plan, created_at) values ($1, $2, $3, $4)
on conflict (id) do update set name = excluded.name, plan = excluded.plan
