package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

// asOnPostgres is the method of a scenario that differs from its PostgreSQL twin only in the store.
const asOnPostgres = "As on PostgreSQL."

func sqliteFlatCost(n sizes, _ map[string]measured) scenario {
	s := flatCost(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-flat-cost", "SQLite: a claim costs the same, whatever else there is", asOnPostgres
	return s
}

// flatCost times claims beside many future jobs, and after a long history under an open transaction.
func flatCost(n sizes, store string) scenario {
	const jobsAClaim = 100
	const empty, ahead, churned = "Sluice, due jobs only", "Sluice, many future jobs", "Sluice, long history"
	task := cell.Task{Kind: cell.Claims, System: cell.Sluice, Store: store, Jobs: n.claims, Due: n.claims * jobsAClaim}
	withAhead, withChurn := task, task
	withAhead.Ahead, withChurn.Churn = n.crowd, n.crowd
	crowd := thousands(n.crowd)
	times := func(name string, figure cell.Figure) func(measured) []float64 {
		return func(m measured) []float64 { return stat.Ratios(m.of(name, figure), m.of(empty, cell.P50)) }
	}
	return scenario{
		limit: 2, // a round stores millions of jobs, which takes minutes
		method: fmt.Sprintf("%d claims of %d jobs are timed, without the completions. "+
			"Future jobs: %s more, due tomorrow, half of the first priority. "+
			"Long history: %s jobs worked off under a transaction still open. "+
			"New: a store just opened.", n.claims, jobsAClaim, crowd, crowd),
		entrants: []entrant{{empty, task}, {ahead, withAhead}, {churned, withChurn}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.NewP50},
		ratio:    "p50 against due jobs only.",
		ratios:   func(m measured, name string) []float64 { return times(name, cell.P50)(m) },
		goals: []goal{
			{"p50 of a claim beside " + crowd + " future jobs, against none", 2, true, "×", times(ahead, cell.P50)},
			{"p50 of a claim after " + crowd + " jobs under an open transaction, against none", 2, true, "×", times(churned, cell.P50)},
			{"the same through a store just opened", 2, true, "×", times(churned, cell.NewP50)},
		},
	}
}

func sqliteEndToEnd(n sizes, _ map[string]measured) scenario {
	const ours = "Sluice"
	others := []string{"River 0.31", "goqite", "backlite"}
	task := func(system string, jobs, slots, connections int) cell.Task {
		return cell.Task{Kind: cell.Work, System: system, Store: cell.SQLite, Jobs: jobs, Slots: slots, Connections: connections, Tuned: true}
	}
	return scenario{
		name: "sqlite-end-to-end", title: "SQLite: storing and working off",
		method: "As " + postgresWorkName + ", into one file. Each system has its best slots (Sluice 100, River 1,000, goqite 10, backlite 2,000) " +
			"and, if it allows, one connection. Slower systems get fewer jobs, which is no disadvantage. " +
			"River is the newest version with an available SQLite driver.",
		entrants: []entrant{
			{ours, task(cell.Sluice, n.sqlite, 100, 0)},
			{others[0], task(cell.RiverSQLite, 30_000/n.fraction, 1000, 1)},
			{others[1], task(cell.Goqite, 15_000/n.fraction, 10, 1)},
			{others[2], task(cell.Backlite, 15_000/n.fraction, 2000, 1)},
		},
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.WholeRate},
		ratio:    "whole rate (storing and working off) against the best of the others.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, others, cell.WholeRate, false) },
		goals: []goal{{"whole rate against the best of the others", 5, false, "×", func(m measured) []float64 {
			return m.against(ours, others, cell.WholeRate, false)
		}}},
	}
}

func sqliteEnqueueLatency(n sizes, _ map[string]measured) scenario {
	const ours, goqite, callers = "Sluice", "goqite", 64
	task := func(system string) cell.Task {
		return cell.Task{Kind: cell.Callers, System: system, Store: cell.SQLite, Connections: 1, Callers: callers, Seconds: n.seconds}
	}
	return scenario{
		name: "sqlite-enqueue-latency", title: "SQLite: many callers that store single jobs",
		method: fmt.Sprintf("%d callers store single jobs for %g seconds, each in its own durable transaction. goqite has one connection, its best.",
			callers, n.seconds),
		entrants: []entrant{{ours, task(cell.Sluice)}, {goqite, task(cell.Goqite)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.P50, cell.P95},
		ratio:    "p95 against goqite's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{goqite}, cell.P95, true) },
		goals:    []goal{{"p95 of an insert by 64 callers", 10, true, " ms", figureOf(ours, cell.P95)}},
	}
}

// thousands formats n with commas between the thousands.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
