package main

import "github.com/sluice-queue/sluice/bench/cell"

func postgresLimits(n sizes, _ map[string]measured) scenario {
	s := limitsCost(cell.Task{Kind: cell.Work, System: cell.Sluice, Store: cell.Postgres, Jobs: n.backlog, Slots: 100})
	s.name, s.title = "postgres-limits", "PostgreSQL: what limits cost"
	return s
}

func sqliteLimits(n sizes, _ map[string]measured) scenario {
	s := limitsCost(cell.Task{Kind: cell.Work, System: cell.Sluice, Store: cell.SQLite, Jobs: n.backlog, Slots: 100})
	s.name, s.title = "sqlite-limits", "SQLite: what limits cost"
	return s
}

// limitsCost compares a queue without limits with one whose limits are never reached.
func limitsCost(task cell.Task) scenario {
	const open, limited = "Sluice, no limits", "Sluice, rate and in-flight limit"
	with := task
	with.Limited = true
	share := func(m measured) []float64 { return m.against(limited, []string{open}, cell.WorkRate, false) }
	return scenario{
		method: "Jobs of 1 KB are worked off as above, from a queue without limits and from one with a rate of 1,000,000/s and an in_flight_limit of 1,000,000, " +
			"which are looked at and never reached.",
		entrants: []entrant{{open, task}, {limited, with}},
		headline: []cell.Figure{cell.WorkRate, cell.TotalCPU},
		ratio:    "the work rate divided by that without limits in the same round.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{open}, cell.WorkRate, false) },
		goals:    []goal{{"work rate with limits against none", 0.75, false, "×", share}},
	}
}
