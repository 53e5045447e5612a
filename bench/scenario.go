package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

// scenario is one comparison. In each round, its entrants do the same work one after the other.
type scenario struct {
	name   string
	title  string
	method string
	// limit bounds the rounds; 0: no bound.
	limit    int
	entrants []entrant
	// headline names the figures that a cell's line on standard error shows.
	headline []cell.Figure
	// ratio explains ratios, which returns one value per round for an entrant.
	ratio  string
	ratios func(m measured, name string) []float64
	goals  []goal
	// note writes Markdown below the table; nil: nothing.
	note func(m measured) string
}

func (s scenario) atMost() int {
	if s.limit == 0 {
		return math.MaxInt
	}
	return s.limit
}

// entrant is a system, or a system with certain settings.
type entrant struct {
	name string
	task cell.Task
}

// goal is a target of a scenario. Function values returns the measured value of each round.
type goal struct {
	text   string
	limit  float64
	atMost bool
	unit   string
	values func(m measured) []float64
}

// measured maps an entrant's name to its results, one per round. A failed cell has the result nil.
type measured map[string][]cell.Result

// of returns one figure of an entrant for each round; NaN: not measured.
func (m measured) of(name string, figure cell.Figure) []float64 {
	out := make([]float64, len(m[name]))
	for i, result := range m[name] {
		value, has := result[figure]
		if !has {
			value = math.NaN()
		}
		out[i] = value
	}
	return out
}

// best returns the best value of some entrants in each round.
func (m measured) best(names []string, figure cell.Figure, smallest bool) []float64 {
	series := make([][]float64, len(names))
	for i, name := range names {
		series[i] = m.of(name, figure)
	}
	return stat.Best(series, smallest)
}

// against divides a figure of an entrant by the best of others in the same round.
func (m measured) against(name string, others []string, figure cell.Figure, smallest bool) []float64 {
	return stat.Ratios(m.of(name, figure), m.best(others, figure, smallest))
}

// plan makes a scenario from the sizes and the results of earlier scenarios.
type plan struct {
	name string
	make func(n sizes, earlier map[string]measured) scenario
}

// plans lists all scenarios in order.
var plans = []plan{
	{postgresWorkName, postgresWork},
	{"postgres-million", postgresMillion},
	{"postgres-latency", postgresLatency},
	{"postgres-enqueue-callers", postgresCallers},
	{"postgres-enqueue-one", postgresOneCaller},
	{"postgres-enqueue-pressed", postgresPressed},
	{"postgres-enqueue-tx", postgresOwnTx},
	{"postgres-first-enqueue", postgresFirst},
	{"postgres-flat-cost", postgresFlatCost},
	{"postgres-limits", postgresLimits},
	{"postgres-tenants", postgresTenants},
	{"postgres-keys", postgresKeys},
	{"postgres-giant", postgresGiant},
	{"postgres-turns", postgresTurns},
	{"postgres-metrics", postgresMetrics},
	{"postgres-scrape", postgresScrape},
	{"postgres-wave", postgresWave},
	{"postgres-looks", postgresLooks},
	{"postgres-prune", postgresPrune},
	{"postgres-find", postgresFind},
	{"postgres-find-cost", postgresFindCost},
	{"postgres-file", postgresFile},
	{"postgres-idle", postgresIdle},
	{"postgres-age", postgresAge},
	{"postgres-audit", postgresAudit},
	{"postgres-minutes", postgresMinutes},
	{"postgres-queues", postgresQueues},
	{"postgres-processes", postgresProcesses},
	{"postgres-stored", postgresStored},
	{"postgres-schedules", postgresSchedules},
	{"postgres-midnight", postgresMidnight},
	{"postgres-await", postgresAwait},
	{"sqlite-await", sqliteAwait},
	{"postgres-many", postgresMany},
	{"sqlite-many", sqliteMany},
	{"postgres-batch", postgresBatch},
	{"sqlite-batch", sqliteBatch},
	{"postgres-http", postgresHTTP},
	{"postgres-http-latency", postgresHTTPLatency},
	{"postgres-http-stream", postgresHTTPStream},
	{"postgres-http-waiting", postgresHTTPWaiting},
	{"postgres-console", postgresConsole},
	{"postgres-consoles", postgresConsoles},
	{"sqlite-http", sqliteHTTP},
	{"sqlite-http-latency", sqliteHTTPLatency},
	{"sqlite-console", sqliteConsole},
	{"sqlite-consoles", sqliteConsoles},
	{"sqlite-enqueue-pressed", sqlitePressed},
	{"sqlite-limits", sqliteLimits},
	{"sqlite-tenants", sqliteTenants},
	{"sqlite-keys", sqliteKeys},
	{"sqlite-metrics", sqliteMetrics},
	{"sqlite-scrape", sqliteScrape},
	{"sqlite-wave", sqliteWave},
	{"sqlite-looks", sqliteLooks},
	{"sqlite-prune", sqlitePrune},
	{"sqlite-find", sqliteFind},
	{"sqlite-find-cost", sqliteFindCost},
	{"sqlite-file", sqliteFile},
	{"postgres-waves", postgresWaves},
	{"sqlite-waves", sqliteWaves},
	{"sqlite-flat-cost", sqliteFlatCost},
	{"sqlite-end-to-end", sqliteEndToEnd},
	{"sqlite-enqueue-latency", sqliteEnqueueLatency},
	{"temporal-starts", temporalStarts},
	{"temporal-life", temporalLife},
}

func names(of []plan) []string {
	out := make([]string, len(of))
	for i, p := range of {
		out[i] = p.name
	}
	return out
}

// pick returns the wanted plans in the order of plans.
func pick(wanted []string) ([]plan, error) {
	known := names(plans)
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	var out []plan
	for _, p := range plans {
		if slices.Contains(wanted, p.name) {
			out = append(out, p)
		}
	}
	return out, nil
}

// sizes sets the amount of work of each scenario.
type sizes struct {
	backlog, million int
	// latency is the number of jobs in a latency cell.
	latency int
	// claims is the number of timed claims, crowd the number of other jobs.
	claims, crowd int
	// tenants is the size of a large set of tenants, wave the number of jobs due at one instant.
	tenants, wave int
	// sqlite is Sluice's backlog on SQLite; fraction divides the full backlogs of the other systems.
	sqlite   int
	fraction int
	seconds  float64
	// starts is the number of started workflows, payments the number of payments that wait for Temporal.
	starts, payments int
	// queues is the number of new queues that get first jobs.
	queues int
	// stored is the number of queues of others in the store.
	stored int
	// schedules is the number of schedules that fire every second.
	schedules int
	// midnight is the number of schedules that fire at one instant, sleeping that of schedules that fire on another day.
	midnight, sleeping int
	// waiters is the least number of callers that wait, ten times as many as jobs end per second.
	waiters int
	// prune is the rate of jobs beside deletions, per second.
	prune int
	// age is the number of jobs that go through one store.
	age int
}

var (
	whole = sizes{backlog: 100_000, million: 1_000_000, latency: 1000, claims: 200, crowd: 1_000_000, tenants: 100_000, wave: 500_000, sqlite: 100_000, fraction: 1, seconds: 10, starts: 3000, payments: 2000, queues: 50, stored: 20_000, schedules: 1000, midnight: 10_000, sleeping: 100_000, waiters: 10_000, prune: 20_000, age: 5_000_000}
	small = sizes{backlog: 10_000, million: 30_000, latency: 100, claims: 30, crowd: 20_000, tenants: 2_000, wave: 4_000, sqlite: 10_000, fraction: 10, seconds: 1, starts: 50, payments: 100, queues: 10, stored: 200, schedules: 100, midnight: 500, sleeping: 1000, waiters: 300, prune: 2_000, age: 20_000}
)
