package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
)

// postgresCallers compares how single jobs of many callers are stored.
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
		method: fmt.Sprintf("%d callers store one job of 1 KB after the other for %g seconds. Each call returns when its job is committed. Both have a pool of 20 connections.",
			callers, n.seconds),
		entrants: []entrant{{ours, task(cell.Sluice)}, {river, task(cell.River)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "the rate divided by River's of the same round.",
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

// postgresOneCaller compares how one caller stores single jobs.
func postgresOneCaller(n sizes, _ map[string]measured) scenario {
	const ours, river, bare = "Sluice", "River", "bare INSERT"
	task := func(system string) cell.Task {
		return cell.Task{Kind: cell.Callers, System: system, Store: cell.Postgres, Callers: 1, Seconds: n.seconds}
	}
	return scenario{
		name: "postgres-enqueue-one", title: "PostgreSQL: one caller that stores single jobs",
		method: fmt.Sprintf("One caller stores one job of 1 KB after the other for %g seconds. The bare INSERT stores a row with a state, an instant and the payload in a table with one index beside its key: "+
			"the least that a queue must do.", n.seconds),
		entrants: []entrant{{ours, task(cell.Sluice)}, {bare, task(cell.Bare)}, {river, task(cell.River)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "the median time of a call divided by the bare INSERT's of the same round.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{bare}, cell.P50, true) },
		goals: []goal{{"p50 of a call against a bare INSERT's", 1.1, true, "×", func(m measured) []float64 {
			return m.against(ours, []string{bare}, cell.P50, true)
		}}},
	}
}

// postgresOwnTx compares how jobs are stored in transactions of the caller's own.
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
		method: fmt.Sprintf("%d callers begin a transaction, store one job of 1 KB in it and commit, for %g seconds. The transactions come from a pool of the caller's own with pgx's defaults. "+
			"River stores by InsertTx; its driver for database/sql is not at hand.", callers, n.seconds),
		entrants: []entrant{{ofPGX, task(cell.Sluice, cell.PGX)}, {river, task(cell.River, cell.PGX)}, {ofSQL, task(cell.Sluice, cell.DatabaseSQL)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "the CPU a job divided by River's of the same round.",
		ratios:   func(m measured, name string) []float64 { return cpu(name)(m) },
		goals: []goal{
			{"CPU a job with pgx against River's InsertTx", 1, true, "×", cpu(ofPGX)},
			{"CPU a job with database/sql against River's InsertTx with pgx", 1, true, "×", cpu(ofSQL)},
		},
	}
}

// postgresFirst times the first jobs of new queues.
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
		method: fmt.Sprintf("%d callers at once store one job of 1 KB each in a queue that nobody has named before; %d queues, one after the other. "+
			"Two processes: half of the callers have a store of their own. SQL function: enqueue with new_queue => true, through a pool of 20 connections.", callers, n.queues),
		entrants: []entrant{{one, task(cell.Sluice, 1)}, {two, task(cell.Sluice, 2)}, {bySQL, task(cell.SluiceSQL, 1)}, {river, task(cell.River, 1)}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.Worst},
		ratio:    "the worst call divided by River's of the same round.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{river}, cell.Worst, true) },
		goals:    []goal{most(one), most(two), most(bySQL)},
	}
}
