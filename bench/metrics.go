package main

import (
	"github.com/sluice-queue/sluice/bench/cell"
)

func postgresMetrics(n sizes, _ map[string]measured) scenario {
	s := metricsCost(cell.Task{Kind: cell.Work, System: cell.Sluice, Store: cell.Postgres, Jobs: n.backlog, Slots: 100})
	s.name, s.title = "postgres-metrics", "PostgreSQL: what metrics cost"
	return s
}

func sqliteMetrics(n sizes, _ map[string]measured) scenario {
	s := metricsCost(cell.Task{Kind: cell.Work, System: cell.Sluice, Store: cell.SQLite, Jobs: n.backlog, Slots: 100})
	s.name, s.title = "sqlite-metrics", "SQLite: what metrics cost"
	return s
}

// metricsCost compares a store that nobody observes with one that is observed for Prometheus.
func metricsCost(task cell.Task) scenario {
	const plain, told = "Sluice", "Sluice, metrics"
	observed := task
	observed.Metrics = true
	share := func(m measured) []float64 { return m.against(told, []string{plain}, cell.WorkRate, false) }
	return scenario{
		method:   "Jobs of 1 KB are worked off as above, without metrics and with: every call of the store is counted and timed, and the gauges are read when the work begins and every 10 s.",
		entrants: []entrant{{plain, task}, {told, observed}},
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.TotalCPU},
		ratio:    "the work rate divided by that without metrics in the same round.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{plain}, cell.WorkRate, false) },
		goals: []goal{
			{"work rate with metrics against none", 0.97, false, "×", share},
			{"processor time with metrics against none", 1.03, true, "×", func(m measured) []float64 { return m.against(told, []string{plain}, cell.TotalCPU, true) }},
		},
	}
}
