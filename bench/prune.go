package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

func postgresPrune(n sizes, _ map[string]measured) scenario {
	s := prune(n, cell.Postgres, n.prune)
	s.name, s.title = "postgres-prune", "PostgreSQL: deleting history beside the work"
	return s
}

func sqlitePrune(n sizes, _ map[string]measured) scenario {
	s := prune(n, cell.SQLite, n.prune/2)
	s.name, s.title = "sqlite-prune", "SQLite: deleting history beside the work"
	return s
}

// keepSeconds is how long finished jobs are kept in the prune scenarios. It stands for an hour: what is too old has to be
// gone within a twelfth of it.
const keepSeconds = 12.0

// prune works jobs off that are kept for ever, and others that are soon deleted.
func prune(n sizes, store string, rate int) scenario {
	const kept, pruned = "Sluice, kept for ever", "Sluice, pruned"
	seconds := 5 * int(keepSeconds)
	if n.seconds < whole.seconds {
		seconds = 2 * int(keepSeconds)
	}
	task := cell.Task{Kind: cell.Prune, System: cell.Sluice, Store: store, Slots: 1000, Rate: rate, Jobs: rate * seconds}
	brief := task
	brief.KeepSeconds = keepSeconds
	return scenario{
		method: fmt.Sprintf("%s jobs of 1 KB a second are stored and worked off by handlers that do nothing, for %d s. "+
			"Finished jobs are kept for ever, or for %g s; a pass of pruning is followed by a rest of 0.2 s. Overdue is how much longer the oldest one was there, at the worst.",
			thousands(rate), seconds, keepSeconds),
		entrants: []entrant{{kept, task}, {pruned, brief}},
		headline: []cell.Figure{cell.WholeRate, cell.TotalCPU, cell.Overdue},
		ratio:    "the CPU a job divided by that of jobs that are kept for ever, in the same round.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{kept}, cell.TotalCPU, true) },
		goals: []goal{
			{"how much longer a job was kept than its " + fmt.Sprint(keepSeconds) + " s, at the worst", keepSeconds * 1000 / 12, true, " ms", figureOf(pruned, cell.Overdue)},
			{"CPU a job, pruned against kept for ever", 1.1, true, "×", func(m measured) []float64 {
				return stat.Ratios(m.of(pruned, cell.TotalCPU), m.of(kept, cell.TotalCPU))
			}},
		},
	}
}
