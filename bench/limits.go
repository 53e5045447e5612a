package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

func postgresLimits(n sizes, _ map[string]measured) scenario {
	s := limitsCost(workTask(cell.Sluice, cell.Postgres, n.backlog, 100))
	s.name, s.title = "postgres-limits", "PostgreSQL: what limits cost"
	return s
}

func sqliteLimits(n sizes, _ map[string]measured) scenario {
	s := limitsCost(workTask(cell.Sluice, cell.SQLite, n.backlog, 100))
	s.name, s.title, s.method = "sqlite-limits", "SQLite: what limits cost", asOnPostgres
	return s
}

// limitsCost compares a queue without limits with queues whose limits are never reached.
func limitsCost(task cell.Task) scenario {
	const open, limited, byTenant = "Sluice, no limits", "Sluice, rate and concurrency limit", "Sluice, tenants in turns"
	task.Tenants = 100
	limits, turns := task, task
	limits.Limited, turns.ByTenant = true, true
	share := func(name string) func(m measured) []float64 {
		return func(m measured) []float64 { return m.against(name, []string{open}, cell.WorkRate, false) }
	}
	return scenario{
		method: fmt.Sprintf("As %s, with %d tenants: without limits; with a rate of 1,000,000/s and a concurrency of 1,000,000; "+
			"and with turns, such a rate, and such a capacity and rate for each tenant. No limit is reached.", postgresWorkName, task.Tenants),
		entrants: []entrant{{open, task}, {limited, limits}, {byTenant, turns}},
		headline: []cell.Figure{cell.EnqueueRate, cell.WorkRate, cell.TotalCPU},
		ratio:    "work rate against no limits.",
		ratios:   func(m measured, name string) []float64 { return share(name)(m) },
		goals: []goal{
			{"work rate with limits against none", 0.75, false, "×", share(limited)},
			{"work rate with concurrency, rate and turns of tenants against none", 0.75, false, "×", share(byTenant)},
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
	s.method = asOnPostgres
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
		method: fmt.Sprintf("%d claims of %d jobs are timed, without the completions. The queue is fair, with a rate, and a capacity and rate for each tenant. "+
			"The due jobs have %d tenants. Blocked: %s more jobs, of 100 tenants with their one allowed job in flight. "+
			"Many tenants: the due jobs have %s tenants, and %s more tenants have a job due tomorrow. "+
			"Both, and an old transaction: all of this, and %s jobs worked off under a transaction still open.",
			n.claims, jobsAClaim, few, crowd, tenants, tenants, churn),
		entrants: []entrant{{empty, task}, {blocked, withBlocked}, {crowded, withTenants}, {all, withAll}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "p50 against 100 tenants and nothing else.",
		ratios:   func(m measured, name string) []float64 { return times(name)(m) },
		goals: []goal{
			{"p50 of a claim beside " + crowd + " blocked jobs of full tenants, against none", 2, true, "×", times(blocked)},
			{"p50 of a claim with " + tenants + " tenants, against 100", 2, true, "×", times(crowded)},
			{"p50 of a claim with both, under a transaction open for " + churn + " jobs", 2, true, "×", times(all)},
		},
	}
}

func postgresKeys(n sizes, _ map[string]measured) scenario {
	s := keysCost(n, cell.Postgres)
	s.name, s.title = "postgres-keys", "PostgreSQL: a claim under a limit per key, whatever the limit holds back"
	return s
}

func sqliteKeys(n sizes, _ map[string]measured) scenario {
	s := keysCost(n, cell.SQLite)
	s.name, s.title, s.method = "sqlite-keys", "SQLite: a claim under a limit per key, whatever the limit holds back", asOnPostgres
	return s
}

// keysCost times claims from a queue that shares a limit per key.
func keysCost(n sizes, store string) scenario {
	const jobsAClaim = 100
	const open, empty, blocked = "Sluice, no limits", "Sluice, a limit per key", "Sluice, a limit per key and many blocked jobs"
	task := cell.Task{Kind: cell.Claims, System: cell.Sluice, Store: store, Jobs: n.claims, Due: (n.claims + 1) * jobsAClaim}
	keyed := task
	keyed.PerKey = true
	withBlocked := keyed
	withBlocked.Blocked = n.crowd
	times := func(name, other string) func(measured) []float64 {
		return func(m measured) []float64 { return stat.Ratios(m.of(name, cell.P50), m.of(other, cell.P50)) }
	}
	crowd, keys := thousands(n.crowd), thousands(n.crowd/100)
	return scenario{
		limit: 2, // a round stores millions of jobs, which takes minutes
		method: fmt.Sprintf("%d claims of %d jobs are timed, without the completions: from a queue without limits, and from one that shares a limit of one job in flight "+
			"for each limit key, where each due job has a key of its own. Blocked: %s more jobs, of %s keys with their one allowed job in flight.",
			n.claims, jobsAClaim, crowd, keys),
		entrants: []entrant{{open, task}, {empty, keyed}, {blocked, withBlocked}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "p50 against a limit per key and nothing else.",
		ratios:   func(m measured, name string) []float64 { return times(name, empty)(m) },
		goals: []goal{
			{"p50 of a claim beside " + crowd + " jobs blocked by limit keys, against none", 2, true, "×", times(blocked, empty)},
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
	s.name, s.title, s.method = "sqlite-wave", "SQLite: jobs that are all due at the same instant", asOnPostgres
	return s
}

// waveKept measures how well a wave of jobs keeps to its rate.
func waveKept(n sizes, store string) scenario {
	const ours, rate = "Sluice", 2000
	return scenario{
		limit: 1, // the rate sets its length: about 4 minutes
		method: fmt.Sprintf("%s jobs fall due at one instant, in a queue with a rate of %s/s. One process works, with 100 slots and upkeep. "+
			"p50 and p99 are lateness: from the instant that the rate has for a job to its handler. Span is the time from the first start to the last, against the plan.",
			thousands(n.wave), thousands(rate)),
		entrants: []entrant{{ours, cell.Task{Kind: cell.Wave, System: cell.Sluice, Store: store, Jobs: n.wave, Slots: 100, Rate: rate}}},
		headline: []cell.Figure{cell.P50, cell.P99, cell.Span, cell.Memory},
		ratio:    "time from the first start to the last, against the plan.",
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
	s.name, s.title, s.method = "sqlite-looks", "SQLite: asking why a job waits", asOnPostgres
	return s
}

// looks times explain.Job beside many waiting jobs.
func looks(n sizes, store string) scenario {
	const ours = "Sluice, why"
	return scenario{
		limit:    2,
		method:   fmt.Sprintf("explain.Job is timed for %d of %s due jobs of 1,000 tenants, in a queue with turns, capacities and rates.", n.claims, thousands(n.crowd)),
		entrants: []entrant{{ours, cell.Task{Kind: cell.Looks, System: cell.Sluice, Store: store, Jobs: n.claims, Due: n.crowd, Tenants: 1000, ByTenant: true}}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "p50 itself, in ms.",
		ratios:   func(m measured, name string) []float64 { return m.of(name, cell.P50) },
		goals:    []goal{{"p99 of why", 10, true, " ms", figureOf(ours, cell.P99)}},
	}
}
