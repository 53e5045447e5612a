package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

func postgresSchedules(n sizes, _ map[string]measured) scenario {
	const ours, river = "Sluice", "River, periodic jobs"
	task := cell.Task{Kind: cell.Fires, System: cell.Sluice, Store: cell.Postgres, Jobs: n.schedules, Slots: 100, Seconds: n.seconds}
	other := task
	other.System = cell.River
	return scenario{
		name: "postgres-schedules", title: "PostgreSQL: schedules that fire every second",
		method: fmt.Sprintf("%s schedules fire once a second; one process fires them and runs their jobs, with 100 slots. Lateness runs from the instant "+
			"to the handler. Sluice's schedules are rows, which any process may change; River's periodic jobs are a list in the program. River is tuned as in %s.",
			thousands(n.schedules), postgresWorkName),
		entrants: []entrant{{ours, task}, {river, other}},
		headline: []cell.Figure{cell.WorkRate, cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "jobs that ran against all fires.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.Started) },
		goals: []goal{
			{"p99 of lateness of a fire", 1000, true, " ms", figureOf(ours, cell.P99)},
			{"fires that ran, of all", 0.95, false, "×", figureOf(ours, cell.Started)},
		},
	}
}

func postgresMidnight(n sizes, _ map[string]measured) scenario {
	const ours = "Sluice"
	return scenario{
		name: "postgres-midnight", title: "PostgreSQL: many schedules that fire at one instant",
		method: fmt.Sprintf("%s schedules fire at the same instant, every %g s, beside %s that fire on another day. One process fires them and runs "+
			"their jobs, with 100 slots. Lateness runs from the instant to the handler.", thousands(n.midnight), n.seconds, thousands(n.sleeping)),
		entrants: []entrant{{ours, cell.Task{
			Kind: cell.Fires, System: cell.Sluice, Store: cell.Postgres, Jobs: n.midnight, Ahead: n.sleeping, Slots: 100, Seconds: 2 * n.seconds, EveryMillis: int(1000 * n.seconds),
		}}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "jobs that ran against all fires.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.Started) },
		goals:    []goal{{"p99 of lateness of a fire", 2000, true, " ms", figureOf(ours, cell.P99)}},
	}
}

func postgresAwait(n sizes, _ map[string]measured) scenario {
	s := awaitMany(n, cell.Postgres)
	s.name, s.title = "postgres-await", "PostgreSQL: many callers wait for their jobs"
	return s
}

func sqliteAwait(n sizes, _ map[string]measured) scenario {
	s := awaitMany(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-await", "SQLite: many callers wait for their jobs", asOnPostgres
	return s
}

func awaitMany(n sizes, store string) scenario {
	const ours = "Sluice"
	return scenario{
		method: fmt.Sprintf("At least %s callers of one process wait, each for a job, while the worker of another store, as in another process, ends %s jobs a second. Time runs "+
			"from the end of a job to the answer of its caller.", thousands(n.waiters), thousands(n.waiters/10)),
		entrants: []entrant{{ours, cell.Task{Kind: cell.Answers, System: cell.Sluice, Store: store, Jobs: n.waiters, Ahead: n.waiters, Slots: 100, Rate: n.waiters / 10}}},
		headline: []cell.Figure{cell.WorkRate, cell.P50, cell.P99, cell.TotalCPU},
		ratio:    "answers within 20 ms, of all.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.Prompt) },
		goals:    []goal{{"p99 from the end of a job to the answer", 20, true, " ms", figureOf(ours, cell.P99)}},
	}
}

func postgresBatch(n sizes, _ map[string]measured) scenario {
	s := batchCost(workTask(cell.Sluice, cell.Postgres, n.backlog, 100))
	s.name, s.title = "postgres-batch", "PostgreSQL: all jobs in one batch"
	return s
}

func sqliteBatch(n sizes, _ map[string]measured) scenario {
	s := batchCost(workTask(cell.Sluice, cell.SQLite, n.sqlite, 100))
	s.name, s.title, s.method = "sqlite-batch", "SQLite: all jobs in one batch", asOnPostgres
	return s
}

// batchCost compares jobs that are all in one batch with jobs in none.
func batchCost(task cell.Task) scenario {
	grouped := task
	grouped.Grouped = true
	s := workCost(entrant{"Sluice, no batch", task}, entrant{"Sluice, one batch", grouped}, [2]goal{
		{"work rate with all jobs in one batch against none", 0.9, false, "×", nil},
		{"CPU to work off a member against none", 1.05, true, "×", nil},
	})
	s.method = fmt.Sprintf("As %s, without a batch and with one batch of all jobs, which is closed after the work. Then the counts must be exact "+
		"and the callback be stored once.", postgresWorkName)
	return s
}

func postgresMany(n sizes, _ map[string]measured) scenario {
	s := manyCost(workTask(cell.Sluice, cell.Postgres, n.backlog, 100))
	s.name, s.title = "postgres-many", "PostgreSQL: several jobs in one call"
	return s
}

func sqliteMany(n sizes, _ map[string]measured) scenario {
	s := manyCost(workTask(cell.Sluice, cell.SQLite, n.sqlite, 100))
	s.name, s.title, s.method = "sqlite-many", "SQLite: several jobs in one call", asOnPostgres
	return s
}

// manyCost compares handlers that get 100 jobs in each call with handlers that get one.
func manyCost(task cell.Task) scenario {
	many := task
	many.Many = task.Slots
	s := workCost(entrant{"Sluice, one job in a call", task}, entrant{"Sluice, 100 jobs in a call", many}, [2]goal{
		{"work rate with 100 jobs in a call against one", 0.9, false, "×", nil},
		{"CPU to work off a job with 100 in a call against one", 1.1, true, "×", nil},
	})
	s.method = fmt.Sprintf("As %s, with Handle and 100 slots, and with HandleMany and calls of 100.", postgresWorkName)
	return s
}

// workCost compares the work of two cells. The goals are about their rates and about the CPU of a job.
func workCost(plain, with entrant, goals [2]goal) scenario {
	for i, figure := range []cell.Figure{cell.WorkRate, cell.WorkCPU} {
		goals[i].values = func(m measured) []float64 { return stat.Ratios(m.of(with.name, figure), m.of(plain.name, figure)) }
	}
	return scenario{
		entrants: []entrant{plain, with},
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.EnqueueCPU, cell.WorkCPU},
		ratio:    "work rate against " + plain.name + ".",
		ratios: func(m measured, name string) []float64 {
			return m.against(name, []string{plain.name}, cell.WorkRate, false)
		},
		goals: goals[:],
	}
}
