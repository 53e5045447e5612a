// Package postgres keeps jobs in PostgreSQL 12 or later, for many processes on many machines.
//
// Begin with [Open], which connects by a DSN; set Options.Migrate to create or update the schema, or call
// [Migrate]. Use [New] if your program has its own pgx pool. The [Store] implements [sluice.Store].
//
// To enqueue in your own transaction, use [Store.InTx] or, with database/sql, [Store.InSQLTx]. [CompleteTx] and
// [CompleteSQLTx] complete a job in your transaction. [Functions] lists the SQL functions for programs in other
// languages.
//
// Read next: docs/guide/transactions.md, docs/operate.md for operation, and docs/guide/failover.md for standbys.
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
	"github.com/sluice-queue/sluice/internal/awaiting"
	"github.com/sluice-queue/sluice/internal/broadcast"
	"github.com/sluice-queue/sluice/internal/checkup"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/migration"
	"github.com/sluice-queue/sluice/internal/room"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// Options configure a Store. The zero value works.
type Options struct {
	// Migrate brings the schema up to date when the store is opened. Default: opening an outdated schema returns a
	// [sluice.ErrNotMigrated].
	Migrate bool
	// CallTimeout is the deadline of every call, with its tries and waits. Default 10 s.
	CallTimeout time.Duration
	// TransactionPooler declares that connections go through a pooler in transaction mode, such as PgBouncer. The
	// store then uses no session settings and no LISTEN, and workers find jobs of other processes by polling.
	// Default: the store detects such a pooler when it is opened.
	TransactionPooler bool
	// Logger gets errors that no caller can get, such as a lost LISTEN connection. See docs/events.md. Default:
	// [slog.Default].
	Logger *slog.Logger
	// NoStatistics turns counting off: the statistics then contain none of this store's moves. Default: the store
	// counts its moves, and adds them to the statistics every 10 s and at Close. See docs/guide/statistics.md.
	NoStatistics bool
}

// Store is a [sluice.Store] in PostgreSQL. Many goroutines may use it. The interfaces
// [sluice.Store], [alert.Store], [audit.Store] and [forecast.Store] document most of its methods.
type Store struct {
	pool     pool
	ownsPool bool
	options  Options
	// session is the settings that connections request; nil: the pool is the caller's. pooled: there is a pooler in
	// transaction mode.
	session  *session
	pooled   bool
	groups   *enqueueGroups
	signals  broadcast.Broadcaster
	awaits   awaiting.Set
	notifier *notifier
	crowds   crowds
	lowWater lowWater
	// low-water marks of tenant queues, and cursors of tenant changes
	tenantQueueLowWater lowWater
	changeCursor        lowWater
	// cursors up to which upkeep has found no tenant change that claims left
	staleCursor lowWater
	fires       fireLowWater
	limits      limits
	ahead       flow.Ahead // of claims from queues with limits
	queues      queueCache
	forgotten   sync.Map // by queue: when old starts were last deleted
	readings    sync.Map // flow.Reading by queue
	widths      sync.Map // *flow.Width by queue
	// waveSlice is how many jobs one statement of a count reads.
	waveSlice int64
	awaited   sync.Map // queues already recorded as awaited
	// checks are the thresholds of health checks.
	checks map[string]health.Check
	// bigIndex is the size in bytes from which an index is estimated.
	bigIndex int64
	// lookTimeout limits one inspection of Health.
	lookTimeout time.Duration
	clock       serverClock
	closed      atomic.Bool
	schema      migration.Guard
	batchesSeen atomic.Bool // AdvanceBatches has looked at all batches
	log         *event.Log
	tally       *counter.Tally // nil: the store counts nothing
	room        room.Room

	settling   settling // up to where the audit is complete
	repairing  sync.Mutex
	repairFrom repairPlaces // positions of upkeep's repairs
	cleaning   cleaning
}

var _ sluice.Store = (*Store)(nil)

// Open connects to a database and checks its schema. The DSN is a URL, or keywords and values.
func Open(ctx context.Context, dsn string, options Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return openConfig(ctx, config, options)
}

func openConfig(ctx context.Context, config *pgxpool.Config, options Options) (_ *Store, err error) {
	options = options.withDefaults()
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

// pingAfter is the idle time after which a connection is tested before its use. Calls try again on another
// connection anyway. Idle processes look for jobs more often than this, and a test would double the statements of
// each look.
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

// Close adds the last counts to the statistics, and closes the store. If the store opened the pool, Close closes
// that too.
func (s *Store) Close() error {
	s.tally.Close()
	if s.closed.Swap(true) {
		return nil
	}
	s.cleaning.close()
	s.groups.wait()
	s.notifier.stop()
	s.log.Flush()
	if s.ownsPool {
		s.pool.Close()
	}
	return nil
}

// Pool returns the pool of connections, for the caller's own statements and transactions.
func (s *Store) Pool() *pgxpool.Pool { return s.pool.Pool }
