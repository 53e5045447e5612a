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
	s.method = "As on PostgreSQL, at " + thousands(n.prune/2) + " jobs a second."
	return s
}

// keepSeconds is the retention of finished jobs, in seconds, and stands for an hour. Pruning must delete a job within
// 1/12 of this time after its retention.
const keepSeconds = 12.0

// prune compares jobs that are kept for ever with jobs that pruning soon deletes.
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
		method: fmt.Sprintf("%s jobs a second are stored and worked off, for %d s. Finished jobs are kept for ever, or for %g s. "+
			"Pruning rests 0.2 s between passes. Overdue is the longest time that a job stayed beyond its retention.",
			thousands(rate), seconds, keepSeconds),
		entrants: []entrant{{kept, task}, {pruned, brief}},
		headline: []cell.Figure{cell.WholeRate, cell.TotalCPU, cell.Overdue},
		ratio:    "CPU a job against jobs kept for ever.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{kept}, cell.TotalCPU, true) },
		goals: []goal{
			{"how much longer a job was kept than its " + fmt.Sprint(keepSeconds) + " s, at the worst", keepSeconds * 1000 / 12, true, " ms", figureOf(pruned, cell.Overdue)},
			{"CPU a job, pruned against kept for ever", 1.1, true, "×", func(m measured) []float64 {
				return stat.Ratios(m.of(pruned, cell.TotalCPU), m.of(kept, cell.TotalCPU))
			}},
		},
	}
}
