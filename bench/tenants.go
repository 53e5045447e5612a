package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
)

// postgresGiant times claims of small tenants beside a tenant with a large backlog, with fresh and stale statistics.
func postgresGiant(n sizes, _ map[string]measured) scenario {
	const jobsAClaim = 100
	const fresh, empty, alone = "Sluice, fresh statistics", "Sluice, statistics of an empty store", "Sluice, statistics of the one tenant"
	giant, claims := n.crowd/2, n.claims
	task := cell.Task{
		Kind: cell.Claims, System: cell.Sluice, Store: cell.Postgres, Jobs: claims, Due: (claims + 10) * jobsAClaim, Fair: true,
		Tenants: (claims + 10) * jobsAClaim, Giant: giant,
	}
	ofEmpty, ofOne := task, task
	ofEmpty.Stale, ofOne.Stale = cell.StaleEmpty, cell.StaleGiant
	claim := func(name string) goal {
		return goal{name + ": p99 of a claim", 20, true, " ms", figureOf(name, cell.P99)}
	}
	return scenario{
		name: "postgres-giant", title: "PostgreSQL: one tenant's backlog, and statistics of another moment", limit: 3,
		method: fmt.Sprintf("One tenant of a fair queue has %s jobs waiting and its one allowed job in flight. Then %s tenants store a job each. %d claims of %d jobs are timed. "+
			"The server's statistics are fresh, or date from the empty store or from the one tenant's backlog, and stay so.",
			thousands(giant), thousands(task.Tenants), claims, jobsAClaim),
		entrants: []entrant{{fresh, task}, {empty, ofEmpty}, {alone, ofOne}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "p50 itself, in ms.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.P50) },
		goals:    []goal{claim(fresh), claim(empty), claim(alone)},
	}
}

// comingIn returns a task with a stream of 500 jobs a second and three workers.
func comingIn(seconds float64, tenants int) cell.Task {
	return cell.Task{
		Kind: cell.Steady, System: cell.Sluice, Store: cell.Postgres, Rate: 500, Seconds: seconds, Slots: 20, Workers: 3, Tenants: tenants,
	}
}

func comingInMethod(task cell.Task) string {
	return fmt.Sprintf("%d jobs a second arrive for %.0f s, of random tenants. Three workers of 20 slots each run them. "+
		"Lowest is the work of the worst tenth of the time, against the mean.", task.Rate, task.Seconds)
}

// postgresTurns compares a stream of jobs with and without tenants in turns.
func postgresTurns(n sizes, _ map[string]measured) scenario {
	const open, fair, few = "Sluice, no turns", "Sluice, 10,000 tenants in turns", "Sluice, 100 tenants in turns"
	task := comingIn(3*n.seconds, 10_000)
	many, hundred := task, comingIn(3*n.seconds, 100)
	many.Fair, hundred.Fair = true, true
	against := func(name string) func(m measured) []float64 {
		return func(m measured) []float64 { return m.against(name, []string{open}, cell.TotalCPU, true) }
	}
	return scenario{
		name: "postgres-turns", title: "PostgreSQL: tenants in turns, as jobs come in",
		method:   comingInMethod(task),
		entrants: []entrant{{open, task}, {fair, many}, {few, hundred}},
		headline: []cell.Figure{cell.TotalCPU, cell.P50, cell.P99, cell.Lowest},
		ratio:    "CPU a job against no turns.",
		ratios:   func(m measured, name string) []float64 { return against(name)(m) },
		goals: []goal{
			{"CPU a job with 10,000 tenants in turns against none", 1.4, true, "×", against(fair)},
			{"100 tenants in turns: the worst slice against the mean", 0.9, false, "×", figureOf(few, cell.Lowest)},
		},
	}
}

// postgresMinutes measures how evenly 100 tenants in turns are served for ten minutes.
func postgresMinutes(n sizes, _ map[string]measured) scenario {
	const ours = "Sluice, 100 tenants in turns"
	task := comingIn(60*n.seconds, 100)
	task.Fair = true
	return scenario{
		name: "postgres-minutes", title: "PostgreSQL: tenants in turns for ten minutes",
		limit:    1,
		method:   comingInMethod(task),
		entrants: []entrant{{ours, task}},
		headline: []cell.Figure{cell.TotalCPU, cell.P50, cell.P99, cell.Lowest},
		ratio:    "worst tenth against the mean.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.Lowest) },
		goals:    []goal{{"the worst minute against the mean", 0.9, false, "×", figureOf(ours, cell.Lowest)}},
	}
}
