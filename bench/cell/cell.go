// Package cell measures one system doing one thing, in a process of its own: so the processor time
// of one system is not mixed with that of another, and none inherits the other's heap. A task comes
// in as JSON in an environment variable, results go out as lines of JSON.
package cell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// Env names the variable that holds the task of a cell's process.
const Env = "SLUICE_BENCH_CELL"

// Kind says what a cell measures.
type Kind string

// The kinds of cells.
const (
	// Work stores a backlog and then works it off.
	Work Kind = "work"
	// Latency stores a job now and then while a worker waits for it.
	Latency Kind = "latency"
	// LatencyWorker is the other process of a Latency cell whose worker is not in its own.
	LatencyWorker Kind = "latency-worker"
	// Claims times claims, whatever else the store holds.
	Claims Kind = "claims"
	// Callers times many callers that store single jobs at the same time.
	Callers Kind = "callers"
	// First times callers that store the first jobs of a new queue at the same time.
	First Kind = "first"
	// Wave starts jobs that are all due at the same instant, at a rate.
	Wave Kind = "wave"
	// Looks times what people ask of a store with many waiting jobs.
	Looks Kind = "looks"
	// Waves times forecasts, and counting what they rest on.
	Waves Kind = "waves"
	// Steady works off jobs as they come in, at a rate.
	Steady Kind = "steady"
	// Scrape times scrapes of metrics, and the readings that they rest on.
	Scrape Kind = "scrape"
	// Prune works jobs off at a rate while upkeep deletes what ended a while ago.
	Prune Kind = "prune"
	// Fleet lets many workers serve many queues, with few jobs or none.
	Fleet Kind = "fleet"
	// Find times looks for finished jobs by key, tenant and label.
	Find Kind = "find"
	// Age times claims while very many jobs go through one store.
	Age Kind = "age"
	// Starts times how fast workflows are started on a Temporal server.
	Starts Kind = "starts"
	// Life lets payments wait for a Temporal server in some way, and then fall due at the same instant.
	Life Kind = "life"
)

// NeedsTemporal says whether cells of a kind need a Temporal server.
func (k Kind) NeedsTemporal() bool { return k == Starts || k == Life }

// The systems that can be measured.
const (
	Sluice       = "sluice"
	SluiceAcross = "sluice-across"
	River        = "river"
	RiverSQLite  = "river-sqlite"
	Goqite       = "goqite"
	Backlite     = "backlite"
	// SluiceSQL is Sluice by its SQL functions.
	SluiceSQL = "sluice-sql"
	// Bare is no queue: it stores rows in a plain table of PostgreSQL, which is the least that any queue must do.
	Bare = "bare"
)

// The kinds of transactions of a caller's own.
const (
	PGX         = "pgx"
	DatabaseSQL = "database/sql"
)

// The stores of the systems.
const (
	Postgres = "postgres"
	SQLite   = "sqlite"
)

// Task is what a cell measures. Fields that its kind does not need are left zero.
type Task struct {
	Kind   Kind
	System string
	// Store is Postgres or SQLite.
	Store string
	// Place is the URL of an empty database, or the path of a file that is not there yet.
	Place string
	// ServerPID is the first process of the database server; 0: there is no server.
	ServerPID int
	// Temporal is the server that cells of the kinds Starts and Life use; nil: none.
	Temporal *TemporalServer
	// Schema is the text of a schema that a system does not bring along itself.
	Schema string

	// Jobs is how many are stored, or claimed.
	Jobs int
	// Slots is how many handlers may run at once.
	Slots int
	// Connections bounds those to a SQLite file. Default 1.
	Connections int
	// Tuned gives a system the settings that it does best with, instead of its defaults.
	Tuned bool
	// Limited gives Sluice's queue a rate and a limit of jobs in flight that are never reached, so
	// that only looking at them costs.
	Limited bool
	// Metrics has Sluice's store observed for Prometheus, and its gauges read.
	Metrics bool
	// Tenants is of how many tenants the jobs are; 0: they have none.
	Tenants int
	// ByTenant gives Sluice's queue a rate, and its tenants turns, capacities and rates, none of which
	// is ever reached.
	ByTenant bool

	// EveryMillis is the time between two jobs of a Latency cell.
	EveryMillis int
	// Seconds is how long the callers of a Callers cell go on, Callers how many they are.
	Seconds float64
	Callers int
	// OwnTx has each call store its job in a transaction of the caller's own: of pgx or of database/sql. Default: it does not.
	OwnTx string

	// Due is how many jobs wait to be claimed in a Claims cell, or at the beginning of a Steady one, Ahead how many more, or in a Waves cell
	// how many at all, are due in the future, and Churn how many were worked off before while an old snapshot was held.
	Due   int
	Ahead int
	Churn int
	// OldSnapshot has somebody hold a snapshot while the second tenth of the jobs of an Age cell is worked off.
	OldSnapshot bool
	// History is how many jobs have ended before, in a Scrape or Find cell.
	History int
	// AuditFull has the queue of a Claims or Looks cell audit every job, and Audited is how many entries there are before.
	AuditFull bool
	Audited   int
	// Blocked is how many more jobs wait of tenants that are at their capacity.
	Blocked int
	// Workers is how many workers a Steady cell has, each with connections of its own.
	Workers int
	// Fair has Sluice's queue serve its tenants in turns, without any other limit.
	Fair bool
	// Giant is how many more jobs wait of one tenant that is at its capacity.
	Giant int
	// Stale has a PostgreSQL server keep the statistics of an instant: StaleEmpty or StaleGiant. Empty: they are fresh.
	Stale string
	// Sleeping is how many more tenants have a job due in the future.
	Sleeping int

	// Rate is at how many jobs per second those of a Wave or Life cell start, that are all due at once, or those of a Prune or
	// Fleet cell are stored.
	Rate int
	// KeepSeconds is how long finished jobs of a Prune cell are kept; 0: for ever.
	KeepSeconds float64

	// Processes is how many stores, as of so many processes, the callers of a First cell share (default 1), or how many
	// workers a Fleet cell has, Queues how many queues each of them serves, and Stored how many
	// there are in the store at the least.
	Processes int
	Queues    int
	Stored    int
}

// Figure names something that was measured.
type Figure string

// The figures. Rates are per second, times in milliseconds, processor times in milliseconds per
// 1,000 jobs.
const (
	EnqueueRate Figure = "enqueue_rate"
	WorkRate    Figure = "work_rate"
	WholeRate   Figure = "whole_rate"
	P50         Figure = "p50"
	P95         Figure = "p95"
	P99         Figure = "p99"
	Worst       Figure = "worst"
	ClientCPU   Figure = "client_cpu"
	ServerCPU   Figure = "server_cpu"
	TotalCPU    Figure = "total_cpu"
	// NewP50 and NewP99 are of claims through a store that has just been opened.
	NewP50 Figure = "new_p50"
	NewP99 Figure = "new_p99"
	// Span is how long it took from the first start of a wave to the last, divided by what the rate
	// makes of it.
	Span Figure = "span"
	// Lowest is what was worked off in the worst tenth of the time, divided by the mean of all.
	Lowest Figure = "lowest"
	// Memory is the most that the process had, in MiB.
	Memory Figure = "memory"
	// NearP50 and NearP99 are of forecasts of two hours, CountTime is that of counting all jobs.
	NearP50   Figure = "near_p50"
	NearP99   Figure = "near_p99"
	CountTime Figure = "count_time"
	// KeyP99, TenantP99 and LabelP99 are of looks for finished jobs.
	KeyP99    Figure = "key_p99"
	TenantP99 Figure = "tenant_p99"
	LabelP99  Figure = "label_p99"
	// Overdue is how much longer a finished job was kept than it should be, at the worst.
	Overdue Figure = "overdue"
	// FirstP99 is that of the first tenth of the claims of an Age cell, whose other percentiles are of the last one, and Aged the
	// latter divided by it. Size is that of the tables of what has not ended, in MiB, and Grown what they grew to since the
	// third tenth.
	FirstP99 Figure = "first_p99"
	Aged     Figure = "aged"
	Size     Figure = "size"
	Grown    Figure = "grown"
	// Statements is how many a second the server runs, ServerCores and ClientCores how many processors were busy, and Started
	// which share of the jobs began.
	Statements  Figure = "statements"
	ServerCores Figure = "server_cores"
	ClientCores Figure = "client_cores"
	Started     Figure = "started"
	// ReadTime is that of reading all gauges.
	ReadTime Figure = "read_time"

	// StartRate is of workflows; see PlainRate too. EngineCPU is the processor time of Temporal and its own store,
	// PlainCPU that of a process that only starts workflows, and PlainEngine what they cost Temporal.
	StartRate   Figure = "start_rate"
	EngineCPU   Figure = "engine_cpu"
	PlainCPU    Figure = "plain_cpu"
	PlainEngine Figure = "plain_engine"
	// EngineRows is how many rows Temporal keeps for each payment that waits; Rows, Bytes and WAL count
	// Sluice's too. WaitCPU is that of everything, until all wait.
	EngineRows Figure = "engine_rows"
	Rows       Figure = "rows"
	Bytes      Figure = "bytes"
	WAL        Figure = "wal"
	WaitCPU    Figure = "wait_cpu"
	// FirstDone and Drain are how many seconds after they were due the first and the last payment had been
	// made. AloneP99 is of the unrelated workflow while nothing else runs.
	FirstDone Figure = "first_done"
	Drain     Figure = "drain"
	AloneP99  Figure = "alone_p99"
)

// PlainRate is how many workflows the plain client starts in a second with so many calls in flight.
func PlainRate(flights int) Figure { return Figure(fmt.Sprintf("plain_rate_%d", flights)) }

// Result is what a cell measured.
type Result map[Figure]float64

// Main is what the process of a cell does.
func Main(ctx context.Context) error {
	slog.SetDefault(quietLogger())
	go endWithParent()
	var task Task
	decoder := json.NewDecoder(strings.NewReader(os.Getenv(Env)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&task); err != nil {
		return fmt.Errorf("read the task in %s: %w", Env, err)
	}
	measure, known := map[Kind]func(context.Context, Task) (Result, error){
		Work: measureWork, Latency: measureLatency, LatencyWorker: serveLatency, Claims: measureClaims, Callers: measureCallers,
		First: measureFirst, Wave: measureWave, Looks: measureLooks, Waves: measureWaves, Scrape: measureScrape, Steady: measureSteady, Prune: measurePrune, Fleet: measureFleet, Find: measureFind, Age: measureAge,
		Starts: measureStarts, Life: measureLife,
	}[task.Kind]
	if !known {
		return fmt.Errorf("there is no kind of cell %q", task.Kind)
	}
	result, err := measure(ctx, task)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", task.Kind, task.System, err)
	}
	return say(result)
}

// say writes a line for the process that started this one.
func say(result Result) error {
	return json.NewEncoder(os.Stdout).Encode(result)
}

// endWithParent ends this process when the one that started it is gone, however that ended: it
// holds the other end of our standard input.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}

// quietLogger tells of what went wrong, and costs nothing where nothing did.
func quietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
