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
	s.name, s.title = "sqlite-find", "SQLite: finding a finished job"
	return s
}

// find looks for jobs in a short history and in a long one.
func find(n sizes, store string) scenario {
	const short, long = "Sluice, short history", "Sluice, long history"
	task := cell.Task{Kind: cell.Find, System: cell.Sluice, Store: store, Jobs: n.claims, History: n.crowd / 100}
	grown := task
	grown.History = n.crowd * 10
	many := thousands(grown.History)
	return scenario{
		limit: 2, // a round makes millions of rows
		method: fmt.Sprintf("The rows of %s and %s finished jobs of 1,000 tenants are made by SQL, and not analyzed. Each has a key, and one in ten a label. "+
			"%d looks for one job by its key, for the newest 100 of a tenant, and for a job by its label are timed one by one. "+
			"A page by labels alone looks at 20,000 finished jobs, and says where the next one goes on.", thousands(task.History), many, n.claims),
		entrants: []entrant{{short, task}, {long, grown}},
		headline: []cell.Figure{cell.KeyP99, cell.TenantP99, cell.LabelP99},
		ratio:    "the p99 of a look by key divided by that in a short history in the same round.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{short}, cell.KeyP99, true) },
		goals: []goal{
			{"p99 by key, " + many + " finished", 20, true, " ms", figureOf(long, cell.KeyP99)},
			{"p99 of the first page by tenant, " + many + " finished", 100, true, " ms", figureOf(long, cell.TenantP99)},
			{"p99 of the first page by label, " + many + " finished", 100, true, " ms", figureOf(long, cell.LabelP99)},
		},
	}
}
