// Package postgres keeps jobs in PostgreSQL, version 12 or later: many processes, many machines,
// and enqueues and completions inside the caller's own transaction.
package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/broadcast"
	"github.com/sluice-queue/sluice/internal/checkup"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// Options adjust a Store. The zero value works.
type Options struct {
	// Migrate brings the schema up to date when the store is opened. Default: a schema that is not
	// up to date is an ErrNotMigrated.
	Migrate bool
	// CallTimeout is the deadline of every call, tries and waits included. Default 10 s.
	CallTimeout time.Duration
	// TransactionPooler says that the connections go through a pooler in transaction mode, such as
	// PgBouncer: no session settings, no LISTEN and no advisory lock are used, and workers find
	// jobs of other processes by polling.
	TransactionPooler bool
	// Logger gets what cannot be returned to a caller, such as a lost LISTEN connection; see docs/events.md. Default:
	// slog.Default.
	Logger *slog.Logger
}

// Store is a sluice.Store in PostgreSQL. It may be used by many goroutines.
type Store struct {
	pool     *pgxpool.Pool
	ownsPool bool
	options  Options
	signals  broadcast.Broadcaster
	notifier *notifier
	marks    marks
	// Those of tenants' lines, and of what is told of lines.
	lineMarks marks
	hintMarks marks
	// Up to where upkeep found no hint that claims left.
	staleMarks marks
	limits     limits
	widths     sync.Map // *flow.Width by queue
	// pipelines says that the pool's connections plan the statements of a batch each time.
	pipelines bool
	// waveSlice is how many jobs one statement of a count reads.
	waveSlice int64
	awaited   sync.Map // queues that are noted as awaited
	// checks are what health is judged by.
	checks map[string]sluice.HealthCheck
	// bigIndex is from how many bytes on an index is estimated.
	bigIndex int64
	// lookTimeout is how long one look of Health may take.
	lookTimeout time.Duration
	closed      atomic.Bool
	log         *event.Log

	mending  sync.Mutex
	mendFrom mendPlaces // where upkeep goes on looking for what was left behind
}

var _ sluice.Store = (*Store)(nil)

// Open connects to a database, given as a URL or as keywords and values, and checks its schema.
func Open(ctx context.Context, dsn string, options Options) (*Store, error) {
	options = options.withDefaults()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	setSession(config.ConnConfig, options)
	config.ConnConfig.DefaultQueryExecMode = planEachTime
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	store, err := New(ctx, pool, options)
	if err != nil {
		pool.Close()
		return nil, err
	}
	store.ownsPool = true
	return store, nil
}

// New makes a store of a pool that the caller keeps and closes, and checks the schema.
func New(ctx context.Context, pool *pgxpool.Pool, options Options) (*Store, error) {
	s := &Store{pool: pool, options: options.withDefaults(), waveSlice: waveSlice, checks: checkup.Checks("postgres"), bigIndex: bigIndex, lookTimeout: lookTimeout}
	s.log = event.NewLog(s.options.Logger, "", 0)
	s.pipelines = pool.Config().ConnConfig.DefaultQueryExecMode == planEachTime
	if err := s.checkSchema(ctx); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.notifier = startNotifier(s)
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.CallTimeout <= 0 {
		o.CallTimeout = 10 * time.Second
	}
	o.Logger = scrubbed.Logger(o.Logger, nil)
	return o
}

// setSession makes the server give up when we do, whatever became of the connection. What the caller wrote into the
// DSN stays.
func setSession(config *pgx.ConnConfig, options Options) {
	defaults := map[string]string{"application_name": "sluice"}
	if !options.TransactionPooler {
		millis := fmt.Sprint(options.CallTimeout.Milliseconds())
		defaults["statement_timeout"] = millis
		defaults["lock_timeout"] = millis
		defaults["jit"] = "off" // compiling a statement takes a hundred times as long as running it
		defaults["idle_in_transaction_session_timeout"] = fmt.Sprint(3 * options.CallTimeout.Milliseconds())
	}
	for name, value := range defaults {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
}

// Close ends the store, and the pool if the store opened it.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.notifier.stop()
	s.log.Flush()
	if s.ownsPool {
		s.pool.Close()
	}
	return nil
}

// Pool gives the pool of connections, for the caller's own statements and transactions.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }
