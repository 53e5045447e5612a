package records

import (
	"context"
	"database/sql"
	_ "embed"
)

var (
	//go:embed sql/counts.sql
	countsSQL string
	//go:embed sql/runs_check.sql
	runsCheckSQL string
	//go:embed sql/owners.sql
	ownersSQL string
)

// Count is how many executions of a plan are in a state.
type Count struct {
	// Plan is empty for executions whose workspace is gone.
	Plan string
	// Apart says that it counts those of the workspace that is counted apart.
	Apart bool
	State State
	N     int
}

// Counts counts the executions by plan and state, those of one workspace apart. It reads all of them.
func (d *Database) Counts(ctx context.Context, apart string) ([]Count, error) {
	scan := func(rows *sql.Rows, c *Count) error { return rows.Scan(&c.Plan, &c.Apart, &c.State, &c.N) }
	return list(ctx, d.db, scan, countsSQL, apart)
}

// RunsCheck counts what contradicts that each execution ran exactly once. All figures should be 0.
type RunsCheck struct {
	// CompletedWithoutRun executions, those with Several runs, and FailedWithRun ones that began.
	CompletedWithoutRun, Several, FailedWithRun int
}

// CheckRuns compares executions with the runs that began, each of which has left a row.
func (d *Database) CheckRuns(ctx context.Context) (RunsCheck, error) {
	scan := func(rows *sql.Rows, c *RunsCheck) error {
		return rows.Scan(&c.CompletedWithoutRun, &c.Several, &c.FailedWithRun)
	}
	found, err := list(ctx, d.db, scan, runsCheckSQL)
	if err != nil {
		return RunsCheck{}, err
	}
	return found[0], nil
}

// Owners gives the workspace of each execution.
func (d *Database) Owners(ctx context.Context) (map[string]string, error) {
	scan := func(rows *sql.Rows, pair *[2]string) error { return rows.Scan(&pair[0], &pair[1]) }
	found, err := list(ctx, d.db, scan, ownersSQL)
	owners := make(map[string]string, len(found))
	for _, pair := range found {
		owners[pair[0]] = pair[1]
	}
	return owners, err
}
