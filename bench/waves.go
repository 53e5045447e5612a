package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
)

func postgresWaves(n sizes, _ map[string]measured) scenario {
	s := waves(n, cell.Postgres)
	s.name, s.title = "postgres-waves", "PostgreSQL: what falls due ahead"
	return s
}

func sqliteWaves(n sizes, _ map[string]measured) scenario {
	s := waves(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-waves", "SQLite: what falls due ahead", asOnPostgres
	return s
}

// waves times forecasts beside few waiting jobs and beside many.
func waves(n sizes, store string) scenario {
	const few, many = "Sluice, few waiting jobs", "Sluice, many waiting jobs"
	task := cell.Task{Kind: cell.Waves, System: cell.Sluice, Store: store, Jobs: n.claims, Ahead: n.crowd / 1000}
	crowded := task
	crowded.Ahead = n.crowd
	crowd := thousands(n.crowd)
	return scenario{
		limit: 2, // a round stores millions of jobs, which takes minutes
		method: fmt.Sprintf("%s and %s jobs of 1,000 tenants fall due within 24 hours. Each tenant has a capacity of 5; a job runs for 30 s. "+
			"%d forecasts of 24 hours by tenant, and %d of two hours (near), are timed, as in `sluice forecast`. "+
			"Count is the median time of counting all jobs. Upkeep counts for at most 1/50 of the time.", thousands(n.crowd/1000), crowd, n.claims, n.claims),
		entrants: []entrant{{few, task}, {many, crowded}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.NearP50, cell.CountTime},
		ratio:    "p50 of a forecast of 24 hours against few jobs.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{few}, cell.P50, true) },
		goals: []goal{
			{"p99 of a forecast of 24 hours by tenant beside " + crowd + " jobs", 50, true, " ms", figureOf(many, cell.P99)},
			{"p99 of a forecast of two hours beside " + crowd + " jobs", 50, true, " ms", figureOf(many, cell.NearP99)},
		},
	}
}
