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
	s.name, s.title = "sqlite-waves", "SQLite: what falls due ahead"
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
		method: fmt.Sprintf("%s and %s jobs of 1,000 tenants wait, spread over 24 hours. Each tenant has a capacity of 5, and a job runs for 30 s. "+
			"%d forecasts of 24 hours by tenant, and as many of two hours (near), are timed one by one: what `sluice waves` does. "+
			"Count is the median time of counting everything, which upkeep does beside its other work, at most a fiftieth of the time.", thousands(n.crowd/1000), crowd, n.claims),
		entrants: []entrant{{few, task}, {many, crowded}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.NearP50, cell.CountTime},
		ratio:    "the median time of a forecast of 24 hours divided by that beside few jobs in the same round.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{few}, cell.P50, true) },
		goals: []goal{
			{"p99 of a forecast of 24 hours by tenant beside " + crowd + " jobs", 50, true, " ms", figureOf(many, cell.P99)},
			{"p99 of a forecast of two hours beside " + crowd + " jobs", 50, true, " ms", figureOf(many, cell.NearP99)},
		},
	}
}
