package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
)

// postgresCallers compares enqueues of single jobs by many callers.
func postgresCallers(n sizes, _ map[string]measured) scenario {
	const ours, river, callers = "Sluice", "River", 64
	task := func(system string) cell.Task {
		return cell.Task{Kind: cell.Callers, System: system, Store: cell.Postgres, Callers: callers, Seconds: n.seconds}
	}
	against := func(figure cell.Figure, smallest bool) func(measured) []float64 {
		return func(m measured) []float64 { return m.against(ours, []string{river}, figure, smallest) }
	}
	return scenario{
		name: "postgres-enqueue-callers", title: "PostgreSQL: many callers that store single jobs",
		method: fmt.Sprintf("%d callers store single jobs for %g seconds. Each call returns when its job is committed. Both have 20 connections.",
			callers, n.seconds),
		entrants: []entrant{{ours, task(cell.Sluice)}, {river, task(cell.River)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "rate against River's.",
		ratios: func(m measured, name string) []float64 {
			return m.against(name, []string{river}, cell.EnqueueRate, false)
		},
		goals: []goal{
			{"rate against River's", 4, false, "×", against(cell.EnqueueRate, false)},
			{"CPU a job against River's", 0.25, true, "×", against(cell.TotalCPU, true)},
			{"p50 of a call against River's", 0.5, true, "×", against(cell.P50, true)},
		},
	}
}

// postgresOneCaller compares enqueues of single jobs by one caller.
func postgresOneCaller(n sizes, _ map[string]measured) scenario {
	const ours, river, bare = "Sluice", "River", "bare INSERT"
	task := func(system string) cell.Task {
		return cell.Task{Kind: cell.Callers, System: system, Store: cell.Postgres, Callers: 1, Seconds: n.seconds}
	}
	return scenario{
		name: "postgres-enqueue-one", title: "PostgreSQL: one caller that stores single jobs",
		method: fmt.Sprintf("One caller stores single jobs for %g seconds. "+
			"The bare INSERT stores a state, an instant and the payload in a table with one index beside its key: the least work of any queue.", n.seconds),
		entrants: []entrant{{ours, task(cell.Sluice)}, {bare, task(cell.Bare)}, {river, task(cell.River)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "p50 against the bare INSERT's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{bare}, cell.P50, true) },
		goals: []goal{{"p50 of a call against a bare INSERT's", 1.1, true, "×", func(m measured) []float64 {
			return m.against(ours, []string{bare}, cell.P50, true)
		}}},
	}
}

func postgresPressed(n sizes, _ map[string]measured) scenario {
	s := pressed(n.backlog, cell.Postgres)
	s.name, s.title = "postgres-enqueue-pressed", "PostgreSQL: what back-pressure costs one caller"
	return s
}

func sqlitePressed(n sizes, _ map[string]measured) scenario {
	s := pressed(n.sqlite, cell.SQLite)
	s.name, s.title, s.method = "sqlite-enqueue-pressed", "SQLite: what back-pressure costs one caller", asOnPostgres
	return s
}

// pressed compares enqueues of single jobs with max_waiting and without, of one caller in one process.
func pressed(jobs int, store string) scenario {
	const ours = "Sluice"
	return scenario{
		method: fmt.Sprintf("One caller stores %s single jobs in a queue without a limit, and as many in one with max_waiting, by turns of 200. %s jobs wait in each queue before. "+
			"The ratios are medians over the pairs of turns. p50 and client CPU are with max_waiting.", thousands(jobs/10), thousands(jobs)),
		entrants: []entrant{{ours, cell.Task{Kind: cell.Pressed, System: cell.Sluice, Store: store, Jobs: jobs / 10, Due: jobs}}},
		headline: []cell.Figure{cell.P50, cell.PressedP50, cell.PressedCPU},
		ratio:    "p50 with max_waiting against without.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.PressedP50) },
		goals: []goal{
			{"p50 of an enqueue with max_waiting against without", 1.05, true, "×", figureOf(ours, cell.PressedP50)},
			{"client CPU of an enqueue with max_waiting against without", 1.05, true, "×", figureOf(ours, cell.PressedCPU)},
		},
	}
}

// postgresOwnTx compares enqueues in callers' transactions.
func postgresOwnTx(n sizes, _ map[string]measured) scenario {
	const ofPGX, ofSQL, river, callers = "Sluice, pgx", "Sluice, database/sql", "River, pgx", 8
	task := func(system, kind string) cell.Task {
		return cell.Task{Kind: cell.Callers, System: system, Store: cell.Postgres, Callers: callers, Seconds: n.seconds, OwnTx: kind}
	}
	cpu := func(name string) func(measured) []float64 {
		return func(m measured) []float64 { return m.against(name, []string{river}, cell.TotalCPU, true) }
	}
	return scenario{
		name: "postgres-enqueue-tx", title: "PostgreSQL: jobs stored in a transaction of the caller's own",
		method: fmt.Sprintf("%d callers begin a transaction, store a job in it and commit, for %g seconds. "+
			"Transactions come from the callers' pool of 20 connections, else with pgx's defaults. River uses InsertTx; its driver for database/sql is not available.", callers, n.seconds),
		entrants: []entrant{{ofPGX, task(cell.Sluice, cell.PGX)}, {river, task(cell.River, cell.PGX)}, {ofSQL, task(cell.Sluice, cell.DatabaseSQL)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "CPU a job against River's.",
		ratios:   func(m measured, name string) []float64 { return cpu(name)(m) },
		goals: []goal{
			{"CPU a job with pgx against River's InsertTx", 1, true, "×", cpu(ofPGX)},
			{"CPU a job with database/sql against River's InsertTx with pgx", 1, true, "×", cpu(ofSQL)},
		},
	}
}

// postgresFirst times the first enqueues into new queues.
func postgresFirst(n sizes, _ map[string]measured) scenario {
	const one, two, bySQL, river, callers = "Sluice, one process", "Sluice, two processes", "Sluice, SQL function", "River", 64
	task := func(system string, processes int) cell.Task {
		return cell.Task{Kind: cell.First, System: system, Store: cell.Postgres, Callers: callers, Jobs: n.queues, Processes: processes}
	}
	most := func(name string) goal {
		return goal{"worst call, " + name, 50, true, " ms", figureOf(name, cell.Worst)}
	}
	return scenario{
		name: "postgres-first-enqueue", title: "PostgreSQL: the first jobs of a new queue",
		method: fmt.Sprintf("%d callers at the same time store one job each in a new queue; %d queues, one after the other. "+
			"Two processes: each half of the callers has its own store. SQL function: enqueue with new_queue => true, through 20 connections.", callers, n.queues),
		entrants: []entrant{{one, task(cell.Sluice, 1)}, {two, task(cell.Sluice, 2)}, {bySQL, task(cell.SluiceSQL, 1)}, {river, task(cell.River, 1)}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.Worst},
		ratio:    "worst call against River's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{river}, cell.Worst, true) },
		goals:    []goal{most(one), most(two), most(bySQL)},
	}
}
