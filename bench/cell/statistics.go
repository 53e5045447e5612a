package cell

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

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
	conn, err := pgx.Connect(ctx, withoutPool(task.Place))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range []string{
		`do $$ declare t text; begin
			for t in select oid::regclass from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r' loop
				execute 'alter table ' || t || ' set (autovacuum_enabled = off)';
			end loop;
		end $$`,
		"vacuum analyze",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
