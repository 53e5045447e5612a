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

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/broadcast"
	"github.com/sluice-queue/sluice/internal/checkup"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/migration"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// Options adjust a Store. The zero value works.
type Options struct {
	// Migrate brings the schema up to date when the store is opened. Default: a schema that is not
	// up to date is an ErrNotMigrated.
	Migrate bool
	// CallTimeout is the deadline of every call, tries and waits included. Default 10 s.
	CallTimeout time.Duration
	// TransactionPooler says that the connections go through a pooler in transaction mode, such as PgBouncer: no session
	// settings and no LISTEN are used, and workers find jobs of other processes by polling. A pooler is noticed without it.
	TransactionPooler bool
	// Logger gets what cannot be returned to a caller, such as a lost LISTEN connection; see docs/events.md. Default:
	// slog.Default.
	Logger *slog.Logger
	// NoStatistics leaves out counting: what this store does then stands in no statistics. Default: the store counts the
	// moves that it makes, and adds them to the statistics each 10 s and at Close; see docs/guide/statistics.md.
	NoStatistics bool
}

// Store is a sluice.Store in PostgreSQL. It may be used by many goroutines.
type Store struct {
	pool     pool
	ownsPool bool
	options  Options
	// session is what connections ask for, nil: the pool is the caller's. Pooled: behind a pooler in transaction mode.
	session  *session
	pooled   bool
	groups   *enqueueGroups
	signals  broadcast.Broadcaster
	notifier *notifier
	crowds   crowds
	marks    marks
	// Those of tenants' lines, and of what is told of lines.
	lineMarks marks
	hintMarks marks
	// Up to where upkeep found no hint that claims left.
	staleMarks marks
	limits     limits
	queues     queueCache
	forgotten  sync.Map // when starts were forgotten the last time, by queue
	readings   sync.Map // flow.Reading by queue
	widths     sync.Map // *flow.Width by queue
	// waveSlice is how many jobs one statement of a count reads.
	waveSlice int64
	awaited   sync.Map // queues that are noted as awaited
	// checks are what health is judged by.
	checks map[string]health.Check
	// bigIndex is from how many bytes on an index is estimated.
	bigIndex int64
	// lookTimeout is how long one look of Health may take.
	lookTimeout time.Duration
	clock       serverClock
	closed      atomic.Bool
	schema      migration.Guard
	log         *event.Log
	tally       *counter.Tally // nil: nothing is counted

	settling settling // how far the audit can be sealed
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
	session := newSession(options)
	session.apply(config)
	config.ConnConfig.DefaultQueryExecMode = planEachTime
	own := pool{plans: new(plans)}
	if !options.TransactionPooler {
		own.plans.apply(config)
	}
	config.ShouldPing = pingIdle
	markFaults(&config.ConnConfig.Config)
	if own.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	store, err := open(ctx, own, session, options)
	if err != nil {
		own.Close()
		return nil, err
	}
	store.ownsPool = true
	return store, nil
}

// pingAfter is how long a connection has lain idle that is tried before it is used. Calls try again on another one anyway, and
// a process with nothing to do looks for jobs more often: each look would cost it two statements.
const pingAfter = 10 * time.Second

func pingIdle(_ context.Context, params pgxpool.ShouldPingParams) bool {
	return params.IdleDuration > pingAfter
}

// New makes a store of a pool that the caller keeps and closes, and checks the schema.
func New(ctx context.Context, given *pgxpool.Pool, options Options) (*Store, error) {
	if err := sluice.CheckGiven("pool", given); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return open(ctx, pool{Pool: given}, nil, options)
}

func open(ctx context.Context, from pool, session *session, options Options) (*Store, error) {
	s := &Store{pool: from, session: session, options: options.withDefaults(), waveSlice: waveSlice, checks: checkup.Checks("postgres"), bigIndex: bigIndex, lookTimeout: lookTimeout}
	s.groups = newEnqueueGroups(s)
	s.log = event.NewLog(s.options.Logger, "", 0)
	s.pool.together = from.Config().ConnConfig.DefaultQueryExecMode == planEachTime
	if err := s.lookForPooler(ctx); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.checkSchema(ctx); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.schema.Arm(knownSteps())
	s.notifier = startNotifier(s)
	if !s.options.NoStatistics {
		s.tally = counter.New(s, counter.Options{Logger: s.options.Logger, Last: s.options.CallTimeout})
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.CallTimeout <= 0 {
		o.CallTimeout = 10 * time.Second
	}
	o.Logger = scrubbed.Logger(o.Logger, nil)
	return o
}

// Close adds what was counted to the statistics and ends the store, and the pool if the store opened it.
func (s *Store) Close() error {
	s.tally.Close()
	if s.closed.Swap(true) {
		return nil
	}
	s.groups.wait()
	s.notifier.stop()
	s.log.Flush()
	if s.ownsPool {
		s.pool.Close()
	}
	return nil
}

// Pool gives the pool of connections, for the caller's own statements and transactions.
func (s *Store) Pool() *pgxpool.Pool { return s.pool.Pool }
