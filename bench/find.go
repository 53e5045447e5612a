package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
)

func postgresFind(n sizes, _ map[string]measured) scenario {
	s := find(n, cell.Postgres)
	s.name, s.title = "postgres-find", "PostgreSQL: finding a finished job"
	return s
}

func sqliteFind(n sizes, _ map[string]measured) scenario {
	s := find(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-find", "SQLite: finding a finished job", asOnPostgres
	return s
}

// find times searches for finished jobs in a short history and in a long one.
func find(n sizes, store string) scenario {
	const short, long = "Sluice, short history", "Sluice, long history"
	task := cell.Task{Kind: cell.Find, System: cell.Sluice, Store: store, Jobs: n.claims, History: n.crowd / 100}
	grown := task
	grown.History = n.crowd * 10
	many := thousands(grown.History)
	return scenario{
		limit: 2, // a round inserts millions of rows
		method: fmt.Sprintf("SQL makes %s and %s finished jobs of 1,000 tenants, not analyzed. Each has a key, 1 in 10 a label. "+
			"%d searches of each kind are timed: a job by key, the newest 100 jobs of a tenant, a job by label. "+
			"A page by labels alone reads at most 20,000 finished jobs, then names the start of the next page.", thousands(task.History), many, n.claims),
		entrants: []entrant{{short, task}, {long, grown}},
		headline: []cell.Figure{cell.KeyP99, cell.TenantP99, cell.LabelP99},
		ratio:    "p99 by key against a short history.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{short}, cell.KeyP99, true) },
		goals: []goal{
			{"p99 by key, " + many + " finished", 20, true, " ms", figureOf(long, cell.KeyP99)},
			{"p99 of the first page by tenant, " + many + " finished", 100, true, " ms", figureOf(long, cell.TenantP99)},
			{"p99 of the first page by label, " + many + " finished", 100, true, " ms", figureOf(long, cell.LabelP99)},
		},
	}
}
