package main

import (
	"math"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

// postgresWorkName names the scenario whose result decides how River runs in the next one.
const postgresWorkName = "postgres-work"

// riverSlots are the slots that River is measured with.
var riverSlots = []int{100, 1000, 2000}

func sluiceWith(slots int) string { return "Sluice, " + thousands(slots) + " slots" }
func riverWith(slots int) string  { return "River, " + thousands(slots) + " slots" }

func postgresWork(n sizes, _ map[string]measured) scenario {
	s := backlog(n.backlog, riverSlots)
	s.name, s.title = postgresWorkName, "PostgreSQL: working off a backlog"
	return s
}

// postgresMillion lets River run with the slots that were best for it before.
func postgresMillion(n sizes, earlier map[string]measured) scenario {
	slots, rate := 1000, math.Inf(-1)
	for _, candidate := range riverSlots {
		if got := stat.Median(earlier[postgresWorkName].of(riverWith(candidate), cell.WorkRate)); got > rate {
			slots, rate = candidate, got
		}
	}
	s := backlog(n.million, []int{slots})
	s.name, s.title, s.limit = "postgres-million", "PostgreSQL: a backlog of a million", 1
	s.method += " River runs with the slots that were best for it in " + postgresWorkName + " (1,000 if that was not measured)."
	return s
}

// backlog compares Sluice with River, and takes them in turns.
func backlog(jobs int, rivers []int) scenario {
	s := scenario{
		method: "Jobs of 1 KB are stored a thousand at a time, then worked off by handlers that do nothing, until the database says that none is left. " +
			"CPU is that of client and server together, for storing and working off. River stores with its fastest call (InsertManyFast) " +
			"and is tuned: FetchCooldown 1 ms, FetchPollInterval 5 ms. Both have a pool of 20 connections.",
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.TotalCPU},
		ratio:    "the work rate divided by River's best of the same round.",
	}
	var others []string
	ours := []int{100, 1000}
	for i := range max(len(ours), len(rivers)) {
		if i < len(ours) {
			s.entrants = append(s.entrants, entrant{sluiceWith(ours[i]), workTask(cell.Sluice, jobs, ours[i])})
			s.goals = append(s.goals, backlogGoals(sluiceWith(ours[i]), &others)...)
		}
		if i < len(rivers) {
			s.entrants = append(s.entrants, entrant{riverWith(rivers[i]), workTask(cell.River, jobs, rivers[i])})
			others = append(others, riverWith(rivers[i]))
		}
	}
	s.ratios = func(m measured, name string) []float64 { return m.against(name, others, cell.WorkRate, false) }
	return s
}

func workTask(system string, jobs, slots int) cell.Task {
	return cell.Task{Kind: cell.Work, System: system, Store: cell.Postgres, Jobs: jobs, Slots: slots, Tuned: system == cell.River}
}

// backlogGoals names the others by a pointer, because they are not all known yet.
func backlogGoals(name string, others *[]string) []goal {
	return []goal{
		{name + ": work rate against River's best", 2, false, "×", func(m measured) []float64 {
			return m.against(name, *others, cell.WorkRate, false)
		}},
		{name + ": CPU a job against River's best", 0.6, true, "×", func(m measured) []float64 {
			return m.against(name, *others, cell.TotalCPU, true)
		}},
	}
}

func postgresLatency(n sizes, _ map[string]measured) scenario {
	const same, across, tuned, plain = "Sluice, one process", "Sluice, two processes", "River, tuned", "River, defaults"
	task := cell.Task{Kind: cell.Latency, System: cell.Sluice, Store: cell.Postgres, Jobs: n.latency, Slots: 100, EveryMillis: 10}
	other, river := task, task
	other.System, river.System = cell.SluiceAcross, cell.River
	fast := river
	fast.Tuned = true
	return scenario{
		name: "postgres-latency", title: "PostgreSQL: from insert to start, idle queue",
		method: "A job is stored every 10 ms while a worker with 100 slots has nothing else to do. The time is from just before the insert to the first line of the handler. " +
			"In two processes, one stores and the other works. River with its defaults looks at most every 100 ms (FetchCooldown), which is what its figures show.",
		entrants: []entrant{{same, task}, {tuned, fast}, {across, other}, {plain, river}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "the median latency divided by that of tuned River in the same round.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{tuned}, cell.P50, true) },
		goals: []goal{
			{same + ": p50", 5, true, " ms", figureOf(same, cell.P50)},
			{same + ": p99", 15, true, " ms", figureOf(same, cell.P99)},
			{across + ": p50", 5, true, " ms", figureOf(across, cell.P50)},
			{across + ": p99", 15, true, " ms", figureOf(across, cell.P99)},
		},
	}
}

func figureOf(name string, figure cell.Figure) func(measured) []float64 {
	return func(m measured) []float64 { return m.of(name, figure) }
}

func postgresFlatCost(n sizes, _ map[string]measured) scenario {
	s := flatCost(n, cell.Postgres)
	s.name, s.title = "postgres-flat-cost", "PostgreSQL: a claim costs the same, whatever else there is"
	return s
}
