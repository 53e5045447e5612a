package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

func postgresConsole(n sizes, _ map[string]measured) scenario {
	s := watched(n, cell.Postgres)
	s.name, s.title = "postgres-console", "PostgreSQL: console, lists and commands on a big store"
	return s
}

func sqliteConsole(n sizes, _ map[string]measured) scenario {
	s := watched(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-console", "SQLite: console, lists and commands on a big store", asOnPostgres
	return s
}

// watched times reads of a store by console, HTTP and command, and measures what viewers cost.
func watched(n sizes, store string) scenario {
	const small, big, viewers, seconds = "Sluice, small store", "Sluice, big store", 100, 20
	task := cell.Task{Kind: cell.Console, System: cell.Sluice, Store: store, Jobs: n.claims, Due: n.crowd / 10, History: n.crowd, Consoles: viewers, Seconds: seconds}
	grown := task
	grown.Due, grown.History = n.crowd, n.crowd*10
	return scenario{
		limit: 1, // a round inserts millions of rows
		method: fmt.Sprintf("%d pages of the console are read, and over HTTP the first 100 jobs of five lists, as often. Commands run 15 times each; their median is without the start of the process. "+
			"Then %d viewers watch the console for %d s. In the big store %s jobs wait and %s are finished, in the small one a tenth. "+
			"Server and viewers are one process; its processor time and memory count.", n.claims, viewers, seconds, thousands(n.crowd), thousands(n.crowd*10)),
		entrants: []entrant{{small, task}, {big, grown}},
		headline: []cell.Figure{cell.P99, cell.ListP99, cell.QueuesTime, cell.StatsTime, cell.ClientCores, cell.Memory},
		ratio:    "p50 against a small store's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{small}, cell.P50, true) },
		goals: []goal{
			{"p99 of a page of the big store", 200, true, " ms", figureOf(big, cell.P99)},
			{"p99 of a list of the big store over HTTP", 50, true, " ms", figureOf(big, cell.ListP99)},
			{"slowest of the commands queues, jobs, stats, why and forecast", 100, true, " ms", slowestOf(big, cell.QueuesTime, cell.JobsTime, cell.StatsTime, cell.WhyTime, cell.ForecastTime)},
			{fmt.Sprintf("cores of server and %d viewers", viewers), 1, true, "", figureOf(big, cell.ClientCores)},
			{"memory of both", 200, true, " MiB", figureOf(big, cell.Memory)},
		},
	}
}

// slowestOf returns the largest of some figures of an entrant in each round.
func slowestOf(name string, figures ...cell.Figure) func(measured) []float64 {
	return func(m measured) []float64 {
		series := make([][]float64, len(figures))
		for i, figure := range figures {
			series[i] = m.of(name, figure)
		}
		return stat.Best(series, false)
	}
}

func postgresConsoles(n sizes, _ map[string]measured) scenario {
	s := besideConsoles(workTask(cell.Sluice, cell.Postgres, 3*n.backlog, 100))
	s.name, s.title = "postgres-consoles", "PostgreSQL: what open consoles cost the work"
	return s
}

func sqliteConsoles(n sizes, _ map[string]measured) scenario {
	s := besideConsoles(workTask(cell.Sluice, cell.SQLite, 3*n.backlog, 100))
	s.name, s.title, s.method = "sqlite-consoles", "SQLite: what open consoles cost the work", asOnPostgres
	return s
}

// besideConsoles compares work with and without people who watch the console.
func besideConsoles(task cell.Task) scenario {
	const alone, watched, viewers = "Sluice", "Sluice, watched", 20
	open := task
	open.Consoles = viewers
	share := func(m measured) []float64 { return m.against(watched, []string{alone}, cell.WorkRate, false) }
	return scenario{
		method:   fmt.Sprintf("As %s, without and with %d viewers of the console, in the same process through a store of their own.", postgresWorkName, viewers),
		entrants: []entrant{{alone, task}, {watched, open}},
		headline: []cell.Figure{cell.WorkRate, cell.TotalCPU},
		ratio:    "work rate against nobody's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{alone}, cell.WorkRate, false) },
		goals:    []goal{{fmt.Sprintf("work rate with %d viewers against none", viewers), 0.97, false, "×", share}},
	}
}
