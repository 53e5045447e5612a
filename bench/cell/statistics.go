package cell

import "context"

// The instants at which stale statistics were taken.
const (
	// StaleEmpty is before the first job.
	StaleEmpty = "empty"
	// StaleGiant is after the giant tenant's jobs, before the jobs of other tenants.
	StaleGiant = "giant"
)

// takeStatistics switches autovacuum off and runs vacuum analyze, if task.Stale names this instant. The statistics then
// stay.
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
