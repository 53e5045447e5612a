package main

import (
	"fmt"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

// postgresAge measures claims and table sizes while millions of jobs go through one store.
func postgresAge(n sizes, _ map[string]measured) scenario {
	const plain, held = "Sluice", "Sluice, an old snapshot held"
	task := cell.Task{Kind: cell.Age, System: cell.Sluice, Store: cell.Postgres, Jobs: n.age}
	beside := task
	beside.OldSnapshot = true
	return scenario{
		name: "postgres-age", title: "PostgreSQL: a store that grows old",
		limit: 2, // a round takes ten minutes
		method: fmt.Sprintf("%s jobs go through one store: again and again, 10,000 are stored, then claimed and completed in hundreds. "+
			"Upkeep runs beside them, autovacuum with its defaults. In the other cell, a transaction stays open during the second tenth of the jobs. "+
			"p50 and p99 are claims of the last tenth. Size counts all tables except job and done, with their indexes; grown compares it with the third tenth.",
			thousands(n.age)),
		entrants: []entrant{{plain, task}, {held, beside}},
		headline: []cell.Figure{cell.FirstP99, cell.P99, cell.Aged, cell.Size, cell.Grown},
		ratio:    "p99 of the last tenth against no old snapshot.",
		ratios:   func(m measured, name string) []float64 { return m.against(name, []string{plain}, cell.P99, true) },
		goals: []goal{
			{"p99 of a claim, last tenth against first", 1.5, true, "×", figureOf(plain, cell.Aged)},
			{"p99 of a claim, last tenth against first, after an old snapshot", 1.5, true, "×", figureOf(held, cell.Aged)},
			{"size of the tables of what has not ended, against the third tenth", 1.5, true, "×", figureOf(plain, cell.Grown)},
			{"the same after an old snapshot", 1.5, true, "×", figureOf(held, cell.Grown)},
		},
	}
}

// postgresAudit measures whether a long audit slows claims or `why`.
func postgresAudit(n sizes, _ map[string]measured) scenario {
	const claims, longClaims, why, longWhy = "claim, short audit", "claim, long audit", "why, short audit", "why, long audit"
	claim := cell.Task{Kind: cell.Claims, System: cell.Sluice, Store: cell.Postgres, Jobs: n.claims, Due: n.claims * 100, AuditFull: true}
	look := cell.Task{Kind: cell.Looks, System: cell.Sluice, Store: cell.Postgres, Jobs: n.claims, Due: n.claims * 100, Tenants: 1000, ByTenant: true, AuditFull: true}
	longClaim, longLook := claim, look
	longClaim.Audited, longLook.Audited = 20*n.crowd, 20*n.crowd
	shorter := map[string]string{claims: claims, longClaims: claims, why: why, longWhy: why}
	against := func(name string) func(m measured) []float64 {
		return func(m measured) []float64 { return stat.Ratios(m.of(name, cell.P50), m.of(shorter[name], cell.P50)) }
	}
	return scenario{
		name: "postgres-audit", title: "PostgreSQL: a long audit",
		limit: 2, // a round makes tens of millions of rows
		method: fmt.Sprintf("A queue audits every job. %d claims of 100 jobs and %d calls of explain.Job are timed: with an audit of these jobs alone, and beside %s entries of other jobs.",
			n.claims, n.claims, thousands(longClaim.Audited)),
		entrants: []entrant{{claims, claim}, {longClaims, longClaim}, {why, look}, {longWhy, longLook}},
		headline: []cell.Figure{cell.P50, cell.P99},
		ratio:    "p50 against a short audit.",
		ratios:   func(m measured, name string) []float64 { return against(name)(m) },
		goals: []goal{
			{"p50 of a claim beside a long audit, against a short one", 1.1, true, "×", against(longClaims)},
			{"p50 of why beside a long audit, against a short one", 1.1, true, "×", against(longWhy)},
		},
	}
}
