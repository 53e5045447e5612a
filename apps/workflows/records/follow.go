package records

import (
	"context"
	"database/sql"
	_ "embed"
	"strings"

	"github.com/sluice-queue/sluice"
)

var (
	//go:embed sql/execution_follow.sql
	executionFollowSQL string
	//go:embed sql/astray.sql
	astraySQL string
)

// follower keeps the record of each execution as its job is, whoever moves the job: a dispatcher, upkeep, a person with
// the sluice command, or plain SQL. That a run goes is told by the run itself.
var follower = sluice.Follower{
	Name: "workflow_executions", Queue: Queue, Statement: executionFollowSQL,
	States: []sluice.State{sluice.StateQueued, sluice.StateCompleted, sluice.StateDead, sluice.StateCancelled},
}

// jobsView says how the jobs of a database are looked up, and an execution's among them.
type jobsView struct{ name, ofExecution string }

var (
	postgresJobs = jobsView{"sluice.jobs", "j.id = cast(e.id as uuid)"}
	sqliteJobs   = jobsView{"sluice_jobs", "j.id = unhex(replace(e.id, '-', ''))"}
)

// Astray tells of each execution whose record does not say what became of its job. There should be none, ever.
func (d *Database) Astray(ctx context.Context) ([]string, error) {
	scan := func(rows *sql.Rows, text *string) error { return rows.Scan(text) }
	return list(ctx, d.db, scan, strings.NewReplacer("{jobs}", d.jobs.name, "{of execution}", d.jobs.ofExecution).Replace(astraySQL))
}
