package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
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

func postgresFindCost(n sizes, _ map[string]measured) scenario {
	s := findCost(workTask(cell.Sluice, cell.Postgres, n.backlog, 100))
	s.name, s.title = "postgres-find-cost", "PostgreSQL: what the indexes of finished jobs cost"
	return s
}

func sqliteFindCost(n sizes, _ map[string]measured) scenario {
	s := findCost(workTask(cell.Sluice, cell.SQLite, n.sqlite, 100))
	s.name, s.title, s.method = "sqlite-find-cost", "SQLite: what the indexes of finished jobs cost", asOnPostgres
	return s
}

// findCost compares work with and without the indexes by which people find finished jobs.
func findCost(task cell.Task) scenario {
	const without, with = "Sluice, without", "Sluice"
	task.Keyed = true
	bare := task
	bare.NoFinding = true
	against := func(figure cell.Figure) func(m measured) []float64 {
		return func(m measured) []float64 { return stat.Ratios(m.of(with, figure), m.of(without, figure)) }
	}
	return scenario{
		method: "As " + postgresWorkName + ", each job with a key of its own and one of 1,000 tenants: without the indexes of jobs by key and by tenant, and with them. " +
			"Bytes are those of the database for each job.",
		entrants: []entrant{{without, bare}, {with, task}},
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.Bytes},
		ratio:    "rate of storing and working off against none.",
		ratios: func(m measured, name string) []float64 {
			return m.against(name, []string{without}, cell.WholeRate, false)
		},
		goals: []goal{
			{"work rate with the indexes against without", 0.95, false, "×", against(cell.WorkRate)},
			{"bytes with the indexes against without", 1.15, true, "×", against(cell.Bytes)},
		},
	}
}

func postgresFile(n sizes, _ map[string]measured) scenario {
	s := file(n, cell.Postgres)
	s.name, s.title = "postgres-file", "PostgreSQL: the jobs of a file"
	return s
}

func sqliteFile(n sizes, _ map[string]measured) scenario {
	s := file(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-file", "SQLite: the jobs of a file", asOnPostgres
	return s
}

// file times the command that stores the jobs of a file, in one new queue and in as many as there are jobs.
func file(n sizes, store string) scenario {
	const one, many = "one new queue", "as many new queues"
	task := cell.Task{Kind: cell.File, System: cell.Sluice, Store: store, Jobs: n.latency, Queues: 1}
	spread := task
	spread.Queues = task.Jobs
	return scenario{
		method:   fmt.Sprintf("The command stores, from a file, %s jobs of 1 KB: all in one new queue, and each in a new queue of its own. The time includes the start of the process.", thousands(task.Jobs)),
		entrants: []entrant{{one, task}, {many, spread}},
		headline: []cell.Figure{cell.FileTime},
		ratio:    "time against one queue's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{one}, cell.FileTime, true) },
		goals:    []goal{{"time with a new queue for each job", 2000, true, " ms", figureOf(many, cell.FileTime)}},
	}
}
