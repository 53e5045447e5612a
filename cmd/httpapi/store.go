package httpapi

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/wire"
)

// storeCare adds the routes for who operates the store: its slowest statements, and its maintenance.
func (a *API) storeCare() {
	add(a, Route{
		Method: "GET", Path: "/health/statements", Name: "list-statements", Group: "look", Summary: "list the slowest statements of the store",
		Text:  "PostgreSQL counts them with the extension pg_stat_statements; without it, a finding says how to get it. Other stores count none.",
		Needs: access.Operate, Commands: []string{"doctor"},
	}, func(ctx context.Context, c *call, _ *nothing) (statementList, error) {
		report, err := health.Of(ctx, c.api.store, health.Options{Statements: true, Only: "statements"})
		return statementList{Kind: report.Kind, Findings: orEmpty(report.Findings)}, err
	})
	add(a, Route{
		Method: "POST", Path: "/maintenance/{task}", Name: "maintain", Group: "look", Summary: "maintain the store",
		Text:  "Answers within 8 s with what the task has done, and what is left. A checkpoint is for SQLite alone. A vacuum keeps the writers of SQLite waiting, and nobody on PostgreSQL. Retention deletes finished jobs, as upkeep does by itself.",
		Needs: access.Operate, Commands: []string{"upkeep now"}, timeout: maintainTime,
	}, func(ctx context.Context, c *call, in *maintainInput) (health.Maintained, error) {
		return health.Maintain(ctx, c.api.store, in.Task, in.Body.DryRun, c.act(in.Body.Reason))
	})
}

// maintainTime is how long a task may take. A person waits for the answer, and clients send a request again after 10 s.
const maintainTime = 8 * time.Second

// maintainInput names a task.
type maintainInput struct {
	Task health.Task `path:"task" enum:"checkpoint,vacuum,retention" doc:"the task"`
	Body wire.MaintainBody
}

// statementList has what is known of statements.
type statementList struct {
	// Kind is the kind of store: postgres, sqlite or memory.
	Kind string `json:"kind"`
	// Findings are the slowest statements, the one that took the most time first, or why they are not known.
	Findings []health.Finding `json:"findings"`
}
