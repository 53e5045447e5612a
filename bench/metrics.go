package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
)

func postgresMetrics(n sizes, _ map[string]measured) scenario {
	s := metricsCost(workTask(cell.Sluice, cell.Postgres, 3*n.backlog, 100))
	s.name, s.title = "postgres-metrics", "PostgreSQL: what metrics cost"
	return s
}

func sqliteMetrics(n sizes, _ map[string]measured) scenario {
	s := metricsCost(workTask(cell.Sluice, cell.SQLite, 3*n.backlog, 100))
	s.name, s.title, s.method = "sqlite-metrics", "SQLite: what metrics cost", asOnPostgres
	return s
}

// metricsCost compares a plain store with a store observed for Prometheus.
func metricsCost(task cell.Task) scenario {
	const plain, told = "Sluice", "Sluice, metrics"
	observed := task
	observed.Metrics = true
	share := func(m measured) []float64 { return m.against(told, []string{plain}, cell.WorkRate, false) }
	return scenario{
		method:   "As " + postgresWorkName + ", without and with metrics: each store call is counted and timed, and gauges are read every 10 s.",
		entrants: []entrant{{plain, task}, {told, observed}},
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.TotalCPU},
		ratio:    "work rate against no metrics.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{plain}, cell.WorkRate, false) },
		goals: []goal{
			{"work rate with metrics against none", 0.97, false, "×", share},
			{"processor time with metrics against none", 1.03, true, "×", func(m measured) []float64 { return m.against(told, []string{plain}, cell.TotalCPU, true) }},
		},
	}
}

func postgresScrape(n sizes, _ map[string]measured) scenario {
	s := scrapeCost(n, cell.Postgres)
	s.name, s.title = "postgres-scrape", "PostgreSQL: a scrape costs the same, whatever there is"
	return s
}

func sqliteScrape(n sizes, _ map[string]measured) scenario {
	s := scrapeCost(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-scrape", "SQLite: a scrape costs the same, whatever there is", asOnPostgres
	return s
}

// scrapeCost times scrapes of a store with few rows and with many.
func scrapeCost(n sizes, store string) scenario {
	const few, many, scrapes = "Sluice, few jobs", "Sluice, many jobs and a long history", 500
	task := cell.Task{Kind: cell.Scrape, System: cell.Sluice, Store: store, Jobs: scrapes, Due: n.crowd / 1000, History: n.crowd / 100}
	crowded := task
	crowded.Due, crowded.History = n.crowd, 10*n.crowd
	return scenario{
		limit: 2, // a round inserts millions of rows, which takes minutes
		method: fmt.Sprintf("SQL makes %s waiting and %s ended jobs, then %s and %s. Half of the waiting jobs are due, 1,000 in flight, and 1 in 100 ended jobs is dead. "+
			"%d HTTP scrapes read memory only. Read is the median time of reading all gauges, every 10 s.",
			thousands(task.Due), thousands(task.History), thousands(crowded.Due), thousands(crowded.History), scrapes),
		entrants: []entrant{{few, task}, {many, crowded}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.ReadTime},
		ratio:    "p50 against few jobs.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{few}, cell.P50, true) },
		goals: []goal{
			{"p99 of a scrape beside " + thousands(crowded.History) + " jobs that ended and " + thousands(crowded.Due) + " that wait", 50, true, " ms", figureOf(many, cell.P99)},
			{"reading all gauges of them", 500, true, " ms", figureOf(many, cell.ReadTime)},
		},
	}
}
