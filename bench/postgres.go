package main

import (
	"fmt"
	"math"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

// postgresWorkName names the scenario whose result sets River's slots in postgresMillion.
const postgresWorkName = "postgres-work"

// riverSlots are the slot counts that River is measured with.
var riverSlots = []int{100, 1000, 2000}

func sluiceWith(slots int) string { return "Sluice, " + thousands(slots) + " slots" }
func riverWith(slots int) string  { return "River, " + thousands(slots) + " slots" }

// floor names the least work of a queue that keeps what ended.
const floor = "bare floor"

func postgresWork(n sizes, _ map[string]measured) scenario {
	s := backlog(n.backlog, riverSlots)
	s.name, s.title = postgresWorkName, "PostgreSQL: working off a backlog"
	s.method += " The bare floor is a table with a state, a due time, a lease and one index: it copies rows in, claims and completes 500 at a time " +
		"by one statement each, four at once, and does nothing else that a queue needs."
	s.entrants = append(s.entrants, entrant{floor, workTask(cell.Bare, cell.Postgres, n.backlog, 1000)})
	s.goals = append(s.goals, goal{"work rate against the bare floor's", 0.9, false, "×", func(m measured) []float64 {
		return stat.Ratios(m.best([]string{sluiceWith(100), sluiceWith(1000)}, cell.WorkRate, false), m.of(floor, cell.WorkRate))
	}})
	return s
}

// postgresMillion gives River its best slots of postgresWork, or 1,000 if that scenario did not run.
func postgresMillion(n sizes, earlier map[string]measured) scenario {
	slots, rate := 1000, math.Inf(-1)
	for _, candidate := range riverSlots {
		if got := stat.Median(earlier[postgresWorkName].of(riverWith(candidate), cell.WorkRate)); got > rate {
			slots, rate = candidate, got
		}
	}
	s := backlog(n.million, []int{slots})
	s.name, s.title, s.limit = "postgres-million", "PostgreSQL: a backlog of a million", 1
	s.method = "As " + postgresWorkName + ", with River's best slots there."
	return s
}

// backlog compares Sluice with River. Their entrants alternate.
func backlog(jobs int, rivers []int) scenario {
	s := scenario{
		method: "Jobs are stored in thousands, then worked off. River uses InsertManyFast, FetchCooldown 1 ms, FetchPollInterval 5 ms. " +
			"Both have 20 connections.",
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.TotalCPU},
		ratio:    "work rate against River's best.",
	}
	var others []string
	ours := []int{100, 1000}
	for i := range max(len(ours), len(rivers)) {
		if i < len(ours) {
			s.entrants = append(s.entrants, entrant{sluiceWith(ours[i]), workTask(cell.Sluice, cell.Postgres, jobs, ours[i])})
			s.goals = append(s.goals, backlogGoals(sluiceWith(ours[i]), &others)...)
		}
		if i < len(rivers) {
			s.entrants = append(s.entrants, entrant{riverWith(rivers[i]), workTask(cell.River, cell.Postgres, jobs, rivers[i])})
			others = append(others, riverWith(rivers[i]))
		}
	}
	s.ratios = func(m measured, name string) []float64 { return m.against(name, others, cell.WorkRate, false) }
	return s
}

// workTask works off a backlog.
func workTask(system, store string, jobs, slots int) cell.Task {
	return cell.Task{Kind: cell.Work, System: system, Store: store, Jobs: jobs, Slots: slots, Tuned: system == cell.River}
}

// backlogGoals takes others by pointer, because backlog still appends to them.
func backlogGoals(name string, others *[]string) []goal {
	return []goal{
		{name + ": work rate against River's best", 2.5, false, "×", func(m measured) []float64 {
			return m.against(name, *others, cell.WorkRate, false)
		}},
		{name + ": CPU a job against River's best", 0.45, true, "×", func(m measured) []float64 {
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
	against := func(name string, figure cell.Figure) goal {
		return goal{fmt.Sprintf("%s: %s against tuned River's", name, figure), 0.8, true, "×", func(m measured) []float64 {
			return m.against(name, []string{tuned}, figure, true)
		}}
	}
	return scenario{
		name: "postgres-latency", title: "PostgreSQL: from insert to start, idle queue",
		method: "A job is stored every 10 ms for an idle worker with 100 slots. Time runs from the insert to the handler. " +
			"With two processes, one stores, one works. River's defaults look at most every 100 ms (FetchCooldown).",
		entrants: []entrant{{same, task}, {tuned, fast}, {across, other}, {plain, river}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "p50 against tuned River's.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{tuned}, cell.P50, true) },
		goals: []goal{
			against(same, cell.P50), against(same, cell.P99), against(across, cell.P50), against(across, cell.P99),
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
