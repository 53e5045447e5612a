package main

import "github.com/sluice-queue/sluice/bench/cell"

// postgresQueues looks how soon jobs begin in a worker of very many queues.
func postgresQueues(n sizes, _ map[string]measured) scenario {
	const ten, thousand, tenThousand = "10 queues", "1,000 queues", "10,000 queues"
	task := cell.Task{Kind: cell.Fleet, System: cell.Sluice, Store: cell.Postgres, Processes: 1, Queues: 10, Slots: 100, Seconds: n.seconds, Rate: 500}
	many := task
	many.Queues = 1000
	most := task
	most.Queues = 10_000
	return scenario{
		name: "postgres-queues", title: "PostgreSQL: one worker of many queues",
		method:   fleetMethod + "500 single jobs/s are stored by another process, in one queue after the other.",
		entrants: []entrant{{ten, task}, {thousand, many}, {tenThousand, most}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "the CPU a job divided by that with 10 queues in the same round.",
		ratios: func(m measured, name string) []float64 {
			return m.against(name, []string{ten}, cell.TotalCPU, true)
		},
		goals: []goal{
			{"p99 from insert to start with 1,000 queues", 50, true, " ms", figureOf(thousand, cell.P99)},
			{"p99 from insert to start with 10,000 queues", 200, true, " ms", figureOf(tenThousand, cell.P99)},
		},
	}
}

// fleetMethod tells how all cells of many workers measure.
const fleetMethod = "Each worker has a store of its own with at most 4 connections, as in a process of its own. They have run for 12 s, and once as they are measured then, before they are measured. "

// postgresIdle looks what processes cost that have nothing to do, and how soon they begin when they have.
func postgresIdle(n sizes, _ map[string]measured) scenario {
	const idle, sparse = "50 idle", "50, and 5 jobs/s"
	task := cell.Task{Kind: cell.Fleet, System: cell.Sluice, Store: cell.Postgres, Processes: 50, Queues: 10, Slots: 10, Seconds: n.seconds * 3}
	busy := task
	busy.Rate = 5
	return scenario{
		name: "postgres-idle", title: "PostgreSQL: 50 processes with 10 queues each and nothing to do",
		method: fleetMethod + "Statements are those that the server runs. With jobs, one in 200 ms is stored by another process, in one queue after the other; " +
			"every process serves each queue. The time is from just before the insert to the first line of the handler.",
		entrants: []entrant{{idle, task}, {sparse, busy}},
		headline: []cell.Figure{cell.Statements, cell.ServerCores, cell.P99},
		ratio:    "the statements a second divided by those of idle processes in the same round.",
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
