package cell

import "context"

// When a PostgreSQL server took its statistics, if they are to be old.
const (
	// StaleEmpty is before any job was stored.
	StaleEmpty = "empty"
	// StaleGiant is when the jobs of one tenant waited, before those of others came.
	StaleGiant = "giant"
)

// takeStatistics has a server take its statistics if this is the instant that the task names. It keeps them.
func takeStatistics(ctx context.Context, task Task, instant string) error {
	if task.Stale != instant || task.Store != Postgres {
		return nil
	}
	return runOnServer(ctx, task,
		`do $$ declare t text; begin
			for t in select oid::regclass from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r' loop
				execute 'alter table ' || t || ' set (autovacuum_enabled = off)';
			end loop;
		end $$`,
		"vacuum analyze")
}
