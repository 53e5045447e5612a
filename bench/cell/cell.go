// Package cell measures one system at one task, in a separate process: systems share no processor time and no heap. The
// task comes as JSON in an environment variable; results go to standard output as lines of JSON.
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

// Env names the environment variable that holds the task of a cell.
const Env = "SLUICE_BENCH_CELL"

// Kind is the kind of measurement of a cell.
type Kind string

// The kinds of cells.
const (
	// Work stores a backlog, then works it off.
	Work Kind = "work"
	// Latency stores a job now and then for an idle worker.
	Latency Kind = "latency"
	// LatencyWorker is the worker's process of a Latency cell with two processes.
	LatencyWorker Kind = "latency-worker"
	// Claims times claims beside other jobs.
	Claims Kind = "claims"
	// Callers times concurrent callers that store single jobs.
	Callers Kind = "callers"
	// First times concurrent callers that store the first jobs of a new queue.
	First Kind = "first"
	// Wave starts jobs, all due at one instant, at a rate.
	Wave Kind = "wave"
	// Looks times explain.Job beside many waiting jobs.
	Looks Kind = "looks"
	// Waves times forecasts, and the count that they need.
	Waves Kind = "waves"
	// Steady works off jobs that arrive at a rate.
	Steady Kind = "steady"
	// Scrape times scrapes of metrics, and the reads of the gauges.
	Scrape Kind = "scrape"
	// Prune works off jobs at a rate while upkeep deletes old finished jobs.
	Prune Kind = "prune"
	// Fleet runs many workers of many queues, with few jobs or none.
	Fleet Kind = "fleet"
	// Find times searches for finished jobs by key, tenant and label.
	Find Kind = "find"
	// Age times claims while millions of jobs go through one store.
	Age Kind = "age"
	// Fires lets schedules fire again and again.
	Fires Kind = "fires"
	// Waiting lets clients of the HTTP API wait for jobs, and HTTPServer is the server of such a cell.
	Waiting    Kind = "waiting"
	HTTPServer Kind = "http-server"
	// Stream sends one stream of jobs.
	Stream Kind = "stream"
	// Console times pages of the console, lists over HTTP and commands in a big store, then lets viewers watch the console.
	Console Kind = "console"
	// File times the command that stores the jobs of a file.
	File Kind = "file"
	// Answers lets many callers wait for the ends of jobs.
	Answers Kind = "answers"
	// Pressed lets one caller store jobs in a queue with max_waiting and in one without, by turns.
	Pressed Kind = "pressed"
	// Starts measures the rate of workflow starts on a Temporal server.
	Starts Kind = "starts"
	// Life measures payments that wait for a Temporal server, then fall due at one instant.
	Life Kind = "life"
)

// NeedsCommand reports whether cells of this kind run the command.
func (k Kind) NeedsCommand() bool { return k == Console || k == File }

// NeedsTemporal reports whether cells of this kind need a Temporal server.
func (k Kind) NeedsTemporal() bool { return k == Starts || k == Life }

// The systems.
const (
	Sluice       = "sluice"
	SluiceAcross = "sluice-across"
	River        = "river"
	RiverSQLite  = "river-sqlite"
	Goqite       = "goqite"
	Backlite     = "backlite"
	// SluiceSQL is Sluice through its SQL functions.
	SluiceSQL = "sluice-sql"
	// SluiceHTTP is Sluice through its HTTP API.
	SluiceHTTP = "sluice-http"
	// Bare inserts rows into a plain PostgreSQL table, the least work of any queue.
	Bare = "bare"
)

// The kinds of callers' transactions.
const (
	PGX         = "pgx"
	DatabaseSQL = "database/sql"
)

// The stores of the systems.
const (
	Postgres = "postgres"
	SQLite   = "sqlite"
)

// Task describes the work of a cell. Fields that its kind does not need stay zero.
type Task struct {
	Kind   Kind
	System string
	// Store is Postgres or SQLite.
	Store string
	// Place is the URL of an empty database, or the path of a file to create.
	Place string
	// ServerPID is the first process of the database server; 0: no server.
	ServerPID int
	// Temporal is the server for cells of kind Starts and Life; nil: none.
	Temporal *TemporalServer
	// Sluice is the path of the command, for cells of kind Console and File.
	Sluice string
	// Schema is the SQL of a schema that a system cannot install itself (goqite).
	Schema string

	// Jobs is the number of jobs that are stored, of schedules in a Fires cell, or of timed calls: claims, scrapes, forecasts, searches,
	// explain.Job.
	// In a First cell, Jobs is the number of queues.
	Jobs int
	// Slots bounds the concurrent handlers.
	Slots int
	// Connections bounds the connections of a peer to a SQLite file. Default 1. Sluice ignores it.
	Connections int
	// Tuned gives River its best settings instead of its defaults.
	Tuned bool
	// Limited gives Sluice's queue a rate and a concurrency that are never reached: only the checks cost.
	Limited bool
	// Metrics observes Sluice's store for Prometheus and reads its gauges.
	Metrics bool
	// Tenants is the number of tenants of the jobs; 0: no tenants.
	Tenants int
	// ByTenant gives Sluice's queue a rate, and its tenants turns, capacities and rates. No limit is ever reached.
	ByTenant bool
	// PerKey lets Sluice's queue share a limit of one job in flight for each limit key. Each due job has a key of its own.
	PerKey bool

	// EveryMillis is the time between two jobs of a Latency cell, or between two fires of a schedule of a Fires cell (default 1
	// s).
	EveryMillis int
	// Seconds is the length of a Callers, Steady, Fires or Fleet cell. Callers is the number of concurrent callers, in a
	// Callers or First cell.
	Seconds float64
	Callers int
	// OwnTx is PGX or DatabaseSQL: each call stores its job in a caller's transaction. Empty: no such transaction.
	OwnTx string

	// Due is the number of due jobs in a Claims or Looks cell, and at the start of a Steady cell or of each queue of a Pressed cell. In a Scrape or Console cell,
	// half of the Due waiting jobs are due. Ahead is the number of further jobs that are due in the future, of all jobs in a
	// Waves cell, of schedules that fire on another day in a Fires cell, or of jobs that never end in an Answers cell. Churn is the number of jobs worked off before, under an old snapshot.
	Due   int
	Ahead int
	Churn int
	// OldSnapshot holds a snapshot during the second tenth of the jobs of an Age cell.
	OldSnapshot bool
	// History is the number of finished jobs in a Scrape, Console or Find cell.
	History int
	// AuditFull makes the queue of a Claims or Looks cell audit every job. Audited is the number of audit entries of
	// other jobs.
	AuditFull bool
	Audited   int
	// Blocked is the number of further jobs that wait, of 100 tenants at their capacity; with PerKey, of a hundredth as many
	// limit keys.
	Blocked int
	// Workers is the number of workers of a Steady cell, each with its own connections. Default 1.
	Workers int
	// Keyed gives each job of a Work cell a key of its own. NoFinding drops the indexes by which people find finished jobs.
	Keyed     bool
	NoFinding bool
	// Grouped puts all jobs of a Work cell into one batch of Sluice.
	Grouped bool
	// Consoles is the number of viewers of the console in a Console or Work cell.
	Consoles int
	// Many gives Sluice's handler of a Work cell so many jobs in one call, with one call at a time. 0: one job in each call.
	Many int
	// Fair makes Sluice's queue serve tenants in turns, without other limits.
	Fair bool
	// Giant is the number of further jobs that wait, of one tenant at its capacity.
	Giant int
	// Stale freezes PostgreSQL's statistics at an instant: StaleEmpty or StaleGiant. Empty: fresh statistics.
	Stale string
	// Sleeping is the number of further tenants, each with a job due in the future.
	Sleeping int

	// Rate is in jobs per second: the queue's rate in a Wave, Life or Answers cell; the rate of enqueues in a Prune, Fleet or
	// Steady cell.
	Rate int
	// KeepSeconds is the retention of finished jobs of a Prune cell; 0: for ever.
	KeepSeconds float64

	// Processes is the number of stores that the callers of a First cell share (default 1), or of workers in a Fleet
	// cell. Each worker serves Queues queues, over which the jobs of a File cell spread too. The store has at least Stored queues.
	Processes int
	Queues    int
	Stored    int
}

// Figure names a measured value.
type Figure string

// The figures. Rates are per second, times in milliseconds, processor times in milliseconds per 1,000 jobs.
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
	// EnqueueCPU and WorkCPU are the parts of TotalCPU of a Work cell: to store the backlog, and to work it off.
	EnqueueCPU Figure = "enqueue_cpu"
	WorkCPU    Figure = "work_cpu"
	// NewP50 and NewP99 are percentiles of claims through a store just opened.
	NewP50 Figure = "new_p50"
	NewP99 Figure = "new_p99"
	// Span is the time from the first start of a wave to the last, divided by the time that the rate implies.
	Span Figure = "span"
	// Lowest is the number of jobs in the worst tenth of the time, divided by the mean of all tenths.
	Lowest Figure = "lowest"
	// Memory is the peak resident memory of the process, in MiB.
	Memory Figure = "memory"
	// NearP50 and NearP99 are percentiles of forecasts of two hours. CountTime is the median time to count all jobs.
	NearP50   Figure = "near_p50"
	NearP99   Figure = "near_p99"
	CountTime Figure = "count_time"
	// KeyP99, TenantP99 and LabelP99 are percentiles of searches for finished jobs.
	KeyP99    Figure = "key_p99"
	TenantP99 Figure = "tenant_p99"
	LabelP99  Figure = "label_p99"
	// Overdue is the longest time that a finished job stayed beyond its retention.
	Overdue Figure = "overdue"
	// FirstP99 is the p99 of an Age cell's first tenth of claims; P50 and P99 are of the last tenth. Aged is P99
	// divided by FirstP99. Size is the final size of all tables except job and done, in MiB. Grown is Size divided by
	// the size after the third tenth.
	FirstP99 Figure = "first_p99"
	Aged     Figure = "aged"
	Size     Figure = "size"
	Grown    Figure = "grown"
	// Statements is the server's statements per second. ServerCores and ClientCores are the mean numbers of busy
	// processors. Started is the share of the jobs that began.
	Statements  Figure = "statements"
	ServerCores Figure = "server_cores"
	ClientCores Figure = "client_cores"
	Started     Figure = "started"
	// Prompt is the share of answers within 20 ms.
	Prompt Figure = "prompt"
	// ReadTime is the median time to read all gauges.
	ReadTime Figure = "read_time"
	// PressedP50 is the p50 of an enqueue with max_waiting divided by that without, and PressedCPU the client's processor
	// time likewise: medians over pairs of turns.
	PressedP50 Figure = "pressed_p50"
	PressedCPU Figure = "pressed_cpu"

	// ListP99 is a percentile of lists over HTTP. The others are median times of commands in ms, without the start of a process.
	ListP99      Figure = "list_p99"
	QueuesTime   Figure = "queues_time"
	JobsTime     Figure = "jobs_time"
	StatsTime    Figure = "stats_time"
	WhyTime      Figure = "why_time"
	ForecastTime Figure = "forecast_time"
	// FileTime is the time of a command that stores the jobs of a file, in ms.
	FileTime Figure = "file_time"

	// WaiterMemory is the memory that a server holds for each waiting client, in KiB.
	WaiterMemory Figure = "waiter_memory"

	// StartRate is the rate of workflow starts by Sluice; [PlainRate] is the plain client's. EngineCPU is the processor
	// time of Temporal and its store. PlainCPU is the processor time of the plain client; PlainEngine is EngineCPU
	// beside it.
	StartRate   Figure = "start_rate"
	EngineCPU   Figure = "engine_cpu"
	PlainCPU    Figure = "plain_cpu"
	PlainEngine Figure = "plain_engine"
	// EngineRows is the number of Temporal's rows per waiting payment. Rows, Bytes and WAL, also per payment, count
	// Sluice's too. WaitCPU is the processor time of all processes until all payments wait.
	EngineRows Figure = "engine_rows"
	Rows       Figure = "rows"
	Bytes      Figure = "bytes"
	WAL        Figure = "wal"
	WaitCPU    Figure = "wait_cpu"
	// FirstDone and Drain are the seconds from the due instant to the first and the last payment. AloneP99 is the p99
	// of the unrelated workflow while nothing else runs.
	FirstDone Figure = "first_done"
	Drain     Figure = "drain"
	AloneP99  Figure = "alone_p99"
)

// PlainRate names the rate of workflow starts by the plain client, with so many calls in flight.
func PlainRate(flights int) Figure { return Figure(fmt.Sprintf("plain_rate_%d", flights)) }

// Result holds the figures of a cell.
type Result map[Figure]float64

// Main runs the task in [Env] and writes its result to standard output. The process ends with its parent.
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
		First: measureFirst, Wave: measureWave, Looks: measureLooks, Waves: measureWaves, Scrape: measureScrape, Steady: measureSteady, Prune: measurePrune, Fleet: measureFleet, Find: measureFind, Age: measureAge, Fires: measureFires,
		Answers: measureAnswers, Waiting: measureWaiting, HTTPServer: serveUntilTheEnd, File: measureFile, Stream: measureStream, Console: measureConsole,
		Pressed: measurePressed, Starts: measureStarts, Life: measureLife,
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

// say writes a result as a line of JSON, for the parent process.
func say(result Result) error {
	return json.NewEncoder(os.Stdout).Encode(result)
}

// endWithParent ends this process with code 3 when its parent ends in any way. The parent holds the other end of
// standard input.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}

// quietLogger logs warnings and errors only, to standard error.
func quietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
