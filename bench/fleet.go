package main

import "github.com/sluice-queue/sluice/bench/cell"

// postgresQueues measures how soon a worker of thousands of queues begins a job.
func postgresQueues(n sizes, _ map[string]measured) scenario {
	const ten, thousand, tenThousand = "10 queues", "1,000 queues", "10,000 queues"
	task := cell.Task{Kind: cell.Fleet, System: cell.Sluice, Store: cell.Postgres, Processes: 1, Queues: 10, Slots: 100, Seconds: n.seconds, Rate: 500}
	many := task
	many.Queues = 1000
	most := task
	most.Queues = 10_000
	return scenario{
		name: "postgres-queues", title: "PostgreSQL: one worker of many queues",
		method:   fleetMethod + "A separate store enqueues 500 single jobs/s, spread over the queues.",
		entrants: []entrant{{ten, task}, {thousand, many}, {tenThousand, most}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "CPU a job against 10 queues.",
		ratios: func(m measured, name string) []float64 {
			return m.against(name, []string{ten}, cell.TotalCPU, true)
		},
		goals: []goal{
			{"p99 from insert to start with 1,000 queues", 50, true, " ms", figureOf(thousand, cell.P99)},
			{"p99 from insert to start with 10,000 queues", 200, true, " ms", figureOf(tenThousand, cell.P99)},
		},
	}
}

// fleetMethod is the first part of the method of scenarios with [cell.Fleet].
const fleetMethod = "Each worker has its own store with at most 4 connections, as in its own process. Workers first run for 12 s, then once unmeasured. "

// postgresIdle measures the cost of idle processes, and how soon they begin a job.
func postgresIdle(n sizes, _ map[string]measured) scenario {
	const idle, sparse = "50 idle", "50, and 5 jobs/s"
	task := cell.Task{Kind: cell.Fleet, System: cell.Sluice, Store: cell.Postgres, Processes: 50, Queues: 10, Slots: 10, Seconds: n.seconds * 3}
	busy := task
	busy.Rate = 5
	return scenario{
		name: "postgres-idle", title: "PostgreSQL: 50 processes with 10 queues each and nothing to do",
		method: fleetMethod + "Statements are counted on the server. With jobs, a separate store enqueues a job every 200 ms, spread over the queues; " +
			"every process serves every queue. Time runs from the insert to the handler.",
		entrants: []entrant{{idle, task}, {sparse, busy}},
		headline: []cell.Figure{cell.Statements, cell.ServerCores, cell.P99},
		ratio:    "statements a second against idle processes.",
		ratios: func(m measured, name string) []float64 {
			return m.against(name, []string{idle}, cell.Statements, true)
		},
		goals: []goal{
			{"statements a second of 50 idle processes", 30, true, "/s", figureOf(idle, cell.Statements)},
			{"processors of the server that they keep busy", 0.05, true, "", figureOf(idle, cell.ServerCores)},
			{"p99 from insert to start in an idle process", 15, true, " ms", figureOf(sparse, cell.P99)},
		},
	}
}

// postgresProcesses compares many processes of many queues with few.
func postgresProcesses(n sizes, _ map[string]measured) scenario {
	const few, many = "4 processes, 1 queue", "8 processes, 10 queues"
	task := cell.Task{Kind: cell.Fleet, System: cell.Sluice, Store: cell.Postgres, Processes: 4, Queues: 1, Slots: 100, Seconds: n.seconds, Rate: 1000}
	spread := task
	spread.Processes, spread.Queues = 8, 10
	against := func(m measured, name string) []float64 { return m.against(name, []string{few}, cell.TotalCPU, true) }
	return scenario{
		name: "postgres-processes", title: "PostgreSQL: many processes that serve many queues",
		method:   fleetMethod + "A separate store enqueues 1,000 single jobs/s, spread over the queues; every process serves every queue.",
		entrants: []entrant{{few, task}, {many, spread}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "CPU a job against few processes.",
		ratios:   against,
		goals: []goal{{"CPU a job with 8 processes of 10 queues against 4 of one", 1.3, true, "×", func(m measured) []float64 {
			return against(m, many)
		}}},
	}
}

// postgresStored measures what an idle process pays for queues that it does not serve.
func postgresStored(n sizes, _ map[string]measured) scenario {
	const alone, among = "5 queues in all", "5 of 20,000 queues"
	task := cell.Task{Kind: cell.Fleet, System: cell.Sluice, Store: cell.Postgres, Processes: 1, Queues: 5, Slots: 10, Seconds: n.seconds * 3}
	stored := task
	stored.Stored = n.stored
	against := func(m measured, name string) []float64 {
		return m.against(name, []string{alone}, cell.Statements, true)
	}
	return scenario{
		name: "postgres-stored", title: "PostgreSQL: an idle process, and queues of others in the store",
		method:   fleetMethod + "One process serves 5 queues, and nothing comes in. Statements are counted on the server.",
		entrants: []entrant{{alone, task}, {among, stored}},
		headline: []cell.Figure{cell.Statements, cell.ServerCores, cell.ClientCores},
		ratio:    "statements against 5 queues in all.",
		ratios:   against,
		goals: []goal{{"statements with 20,000 queues in the store against 5", 1.1, true, "×", func(m measured) []float64 {
			return against(m, among)
		}}},
	}
}
