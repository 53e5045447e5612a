package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

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

// limitsCost compares a queue without limits with those whose limits are never reached.
func limitsCost(task cell.Task) scenario {
	const open, limited, byTenant = "Sluice, no limits", "Sluice, rate and in-flight limit", "Sluice, tenants in turns"
	task.Tenants = 100
	limits, turns := task, task
	limits.Limited, turns.ByTenant = true, true
	share := func(name string) func(m measured) []float64 {
		return func(m measured) []float64 { return m.against(name, []string{open}, cell.WorkRate, false) }
	}
	return scenario{
		method: fmt.Sprintf("Jobs of 1 KB of %d tenants are worked off as above: from a queue without limits, from one with a rate of 1,000,000/s and an in_flight_limit of 1,000,000, "+
			"and from one that is fair, with such a rate and with such a capacity and rate for each tenant. All of it is looked at and never reached.", task.Tenants),
		entrants: []entrant{{open, task}, {limited, limits}, {byTenant, turns}},
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.TotalCPU},
		ratio:    "the work rate divided by that without limits in the same round.",
		ratios:   func(m measured, name string) []float64 { return share(name)(m) },
		goals: []goal{
			{"work rate with limits against none", 0.75, false, "×", share(limited)},
			{"work rate with capacity, rate and turns of tenants against none", 0.75, false, "×", share(byTenant)},
		},
	}
}

func postgresTenants(n sizes, _ map[string]measured) scenario {
	s := tenantsCost(n, cell.Postgres)
	s.name, s.title = "postgres-tenants", "PostgreSQL: a claim costs the same, however many tenants there are and whatever is held back"
	return s
}

func sqliteTenants(n sizes, _ map[string]measured) scenario {
	s := tenantsCost(n, cell.SQLite)
	s.name, s.title = "sqlite-tenants", "SQLite: a claim costs the same, however many tenants there are and whatever is held back"
	return s
}

// tenantsCost times claims from a queue that serves its tenants in turns.
func tenantsCost(n sizes, store string) scenario {
	const jobsAClaim, few = 100, 100
	const empty, blocked, crowded, all = "Sluice, 100 tenants", "Sluice, many blocked jobs", "Sluice, many tenants", "Sluice, both, and an old transaction"
	task := cell.Task{
		Kind: cell.Claims, System: cell.Sluice, Store: store, Jobs: n.claims, Due: (n.claims + 1) * jobsAClaim, ByTenant: true, Tenants: few,
	}
	withBlocked, withTenants := task, task
	withBlocked.Blocked = n.crowd
	withTenants.Tenants, withTenants.Sleeping = n.tenants, n.tenants
	withAll := withTenants
	withAll.Blocked, withAll.Churn = n.crowd, n.crowd/5
	times := func(name string) func(measured) []float64 {
		return func(m measured) []float64 { return stat.Ratios(m.of(name, cell.P50), m.of(empty, cell.P50)) }
	}
	crowd, tenants, churn := thousands(n.crowd), thousands(n.tenants), thousands(withAll.Churn)
	return scenario{
		limit: 2, // a round stores millions of jobs, which takes minutes
		method: fmt.Sprintf("%d claims of %d jobs each, from a queue that is fair, with a rate, and with a capacity and a rate for each tenant, are timed one by one; what was claimed is completed in between, untimed. "+
			"The due jobs are of %d tenants. Blocked: %s jobs more, of 100 tenants who have their one allowed job in flight. "+
			"Many tenants: the due jobs are of %s tenants, and as many more have a job due tomorrow. "+
			"Both, and an old transaction: all of that, and %s jobs were worked off before while another connection held a transaction open, which it still does.",
			n.claims, jobsAClaim, few, crowd, tenants, churn),
		entrants: []entrant{{empty, task}, {blocked, withBlocked}, {crowded, withTenants}, {all, withAll}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "the median time of a claim divided by that with 100 tenants and nothing else in the same round.",
		ratios:   func(m measured, name string) []float64 { return times(name)(m) },
		goals: []goal{
			{"p50 of a claim beside " + crowd + " blocked jobs of full tenants, against none", 2, true, "×", times(blocked)},
			{"p50 of a claim with " + tenants + " tenants, against 100", 2, true, "×", times(crowded)},
			{"p50 of a claim with both, under a transaction open for " + churn + " jobs", 2, true, "×", times(all)},
		},
	}
}

func postgresWave(n sizes, _ map[string]measured) scenario {
	s := waveKept(n, cell.Postgres)
	s.name, s.title = "postgres-wave", "PostgreSQL: jobs that are all due at the same instant"
	return s
}

func sqliteWave(n sizes, _ map[string]measured) scenario {
	s := waveKept(n, cell.SQLite)
	s.name, s.title = "sqlite-wave", "SQLite: jobs that are all due at the same instant"
	return s
}

// waveKept looks how a wave of jobs keeps to its rate.
func waveKept(n sizes, store string) scenario {
	const ours, rate = "Sluice", 2000
	return scenario{
		limit: 1, // it takes as long as the rate says
		method: fmt.Sprintf("%s jobs of 1 KB fall due at the same instant, in a queue with a rate of %s/s, and so a burst of as many. "+
			"One process with 100 slots works, and upkeep. A job is late by the time from when the rate had a token for it until its handler began.", thousands(n.wave), thousands(rate)),
		entrants: []entrant{{ours, cell.Task{Kind: cell.Wave, System: cell.Sluice, Store: store, Jobs: n.wave, Slots: 100, Rate: rate}}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.Span, cell.Memory},
		ratio:    "how long it took divided by what the rate makes of it.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.Span) },
		goals: []goal{
			{"time from the first start to the last against the plan, at the most", 1.05, true, "×", figureOf(ours, cell.Span)},
			{"the same, at the least", 0.95, false, "×", figureOf(ours, cell.Span)},
			{"p99 of lateness", 1000, true, " ms", figureOf(ours, cell.P99)},
			{"memory of the process", 150, true, " MiB", figureOf(ours, cell.Memory)},
		},
	}
}

func postgresLooks(n sizes, _ map[string]measured) scenario {
	s := looks(n, cell.Postgres)
	s.name, s.title = "postgres-looks", "PostgreSQL: asking why a job waits"
	return s
}

func sqliteLooks(n sizes, _ map[string]measured) scenario {
	s := looks(n, cell.SQLite)
	s.name, s.title = "sqlite-looks", "SQLite: asking why a job waits"
	return s
}

// looks times what people ask beside many waiting jobs.
func looks(n sizes, store string) scenario {
	const ours = "Sluice, why"
	return scenario{
		limit:    2,
		method:   fmt.Sprintf("Client.Why is timed for %d of %s jobs that are due, of 1,000 tenants, in a queue with turns, capacities and rates.", n.claims, thousands(n.crowd)),
		entrants: []entrant{{ours, cell.Task{Kind: cell.Looks, System: cell.Sluice, Store: store, Jobs: n.claims, Due: n.crowd, Tenants: 1000, ByTenant: true}}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "the median time.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.P50) },
		goals:    []goal{{"p99 of why", 10, true, " ms", figureOf(ours, cell.P99)}},
	}
}
