package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
)

// The entrants of comparisons with the HTTP API.
const byGo, byHTTP = "Sluice, Go worker", "Sluice, over HTTP"

func postgresHTTP(n sizes, _ map[string]measured) scenario {
	s := overHTTP(n.backlog, cell.Postgres)
	s.name, s.title = "postgres-http", "PostgreSQL: work over HTTP"
	return s
}

func sqliteHTTP(n sizes, _ map[string]measured) scenario {
	s := overHTTP(n.sqlite, cell.SQLite)
	s.name, s.title, s.method = "sqlite-http", "SQLite: work over HTTP", asOnPostgres
	return s
}

// overHTTP compares work over HTTP with a Go worker.
func overHTTP(jobs int, store string) scenario {
	task := func(system string) cell.Task {
		return cell.Task{Kind: cell.Work, System: system, Store: store, Jobs: jobs, Slots: 1000}
	}
	against := func(figure cell.Figure, smallest bool) func(measured) []float64 {
		return func(m measured) []float64 { return m.against(byHTTP, []string{byGo}, figure, smallest) }
	}
	return scenario{
		method: fmt.Sprintf("%s jobs are stored, then worked off. Over HTTP, a stream of lines per 1,000 jobs stores them, and 10 clients claim and settle 100 jobs at a time. "+
			"Server and clients are one process, on loopback; its processor time counts. The Go worker has 1,000 slots.", thousands(jobs)),
		entrants: []entrant{{byGo, task(cell.Sluice)}, {byHTTP, task(cell.SluiceHTTP)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.TotalCPU},
		ratio:    "work rate against a Go worker's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{byGo}, cell.WorkRate, false) },
		goals: []goal{
			{"work rate against a Go worker's", 0.4, false, "×", against(cell.WorkRate, false)},
			{"CPU a job against a Go worker's", 2, true, "×", against(cell.TotalCPU, true)},
		},
	}
}

func postgresHTTPLatency(n sizes, _ map[string]measured) scenario {
	s := latencyOverHTTP(n, cell.Postgres)
	s.name, s.title = "postgres-http-latency", "PostgreSQL: from insert to start over HTTP"
	return s
}

func sqliteHTTPLatency(n sizes, _ map[string]measured) scenario {
	s := latencyOverHTTP(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-http-latency", "SQLite: from insert to start over HTTP", asOnPostgres
	return s
}

// latencyOverHTTP times single jobs for a waiting client.
func latencyOverHTTP(n sizes, store string) scenario {
	const every = 20
	task := func(system string) cell.Task {
		return cell.Task{Kind: cell.Latency, System: system, Store: store, Jobs: n.latency, Slots: 10, EveryMillis: every}
	}
	return scenario{
		method:   fmt.Sprintf("A job every %d ms, %d jobs. Over HTTP, a client waits for jobs by long polls.", every, n.latency),
		entrants: []entrant{{byGo, task(cell.Sluice)}, {byHTTP, task(cell.SluiceHTTP)}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.Worst},
		ratio:    "p50 against a Go worker's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{byGo}, cell.P50, true) },
		goals: []goal{
			{"p50 over HTTP", 8, true, " ms", figureOf(byHTTP, cell.P50)},
			{"p99 over HTTP", 25, true, " ms", figureOf(byHTTP, cell.P99)},
		},
	}
}

// postgresHTTPStream sends jobs as one stream of lines.
func postgresHTTPStream(n sizes, _ map[string]measured) scenario {
	task := func(system string) cell.Task {
		return cell.Task{Kind: cell.Stream, System: system, Store: cell.Postgres, Jobs: n.million}
	}
	const direct = "Sluice, Go client"
	return scenario{
		name: "postgres-http-stream", title: "PostgreSQL: a stream of jobs over HTTP",
		limit:    2, // a round stores a million jobs
		method:   fmt.Sprintf("One request sends %s lines of 1 KB, and reads an answer for each. Memory is the most that client and server, one process, held. The Go client stores 1,000 jobs per call.", thousands(n.million)),
		entrants: []entrant{{direct, task(cell.Sluice)}, {byHTTP, task(cell.SluiceHTTP)}},
		headline: []cell.Figure{cell.EnqueueRate, cell.Memory, cell.TotalCPU},
		ratio:    "rate against the Go client's.",
		ratios: func(m measured, name string) []float64 {
			return m.against(name, []string{direct}, cell.EnqueueRate, false)
		},
		goals: []goal{
			{"jobs stored", 50_000, false, "/s", figureOf(byHTTP, cell.EnqueueRate)},
			{"memory", 100, true, " MiB", figureOf(byHTTP, cell.Memory)},
		},
	}
}

// postgresHTTPWaiting lets clients wait for jobs.
func postgresHTTPWaiting(n sizes, _ map[string]measured) scenario {
	const one, many, callers = "one client", "2,000 clients", 2000
	task := func(callers int) cell.Task {
		return cell.Task{Kind: cell.Waiting, System: cell.SluiceHTTP, Store: cell.Postgres, Callers: callers, Seconds: n.seconds}
	}
	return scenario{
		name: "postgres-http-waiting", title: "PostgreSQL: clients that wait for jobs over HTTP",
		method: fmt.Sprintf("The clients wait by long polls for %g seconds, and no job comes. The server is a process of its own; "+
			"its memory is what heap and stacks hold beyond those of a server without clients.", n.seconds),
		entrants: []entrant{{one, task(1)}, {many, task(callers)}},
		headline: []cell.Figure{cell.Statements, cell.WaiterMemory},
		ratio:    "statements against one client's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{one}, cell.Statements, true) },
		goals: []goal{
			{"statements with 2,000 clients against one", 1.5, true, "×", func(m measured) []float64 {
				return m.against(many, []string{one}, cell.Statements, true)
			}},
			{"memory a client", 30, true, " KiB", figureOf(many, cell.WaiterMemory)},
		},
	}
}
