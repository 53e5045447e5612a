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
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{river}, cell.EnqueueRate, false) },
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
