package httpapi

import (
	"context"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/health"
)

// statements adds the route of the slowest statements, which only who operates the store may see.
func (a *API) statements() {
	add(a, Route{
		Method: "GET", Path: "/health/statements", Name: "list-statements", Group: "look", Summary: "list the slowest statements of the store",
		Text:  "PostgreSQL counts them with the extension pg_stat_statements; without it, a finding says how to get it. Other stores count none.",
		Needs: access.Operate, Commands: []string{"doctor"},
	}, func(ctx context.Context, c *call, _ *nothing) (statementList, error) {
		report, err := health.Of(ctx, c.api.store, health.Options{Statements: true, Only: "statements"})
		return statementList{Kind: report.Kind, Findings: orEmpty(report.Findings)}, err
	})
}

// statementList has what is known of statements.
type statementList struct {
	// Kind is the kind of store: postgres, sqlite or memory.
	Kind string `json:"kind"`
	// Findings are the slowest statements, the one that took the most time first, or why they are not known.
	Findings []health.Finding `json:"findings"`
}
