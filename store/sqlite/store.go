// Package sqlite keeps jobs in a SQLite file: one machine, no server, full durability. Many
// processes of the machine may use one file at once.
//
// Begin with [Open], which opens a file with this package's driver; set Options.Migrate to create
// or update the schema. Use [New] if your program has its own SQLite driver or ORM. The [Store]
// implements [sluice.Store].
//
// To write jobs and your own rows together, use [Store.Transact] and [Store.InTx]; [CompleteTx]
// completes a job in your transaction. Do all writes through the store if you can: one goroutine
// per process writes, and commits the writes of many callers together.
//
// Read next: docs/guide/transactions.md, docs/guide/sqlite-drivers.md for other drivers,
// docs/operate.md for operation, and package postgres for many machines.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/awaiting"
	"github.com/sluice-queue/sluice/internal/broadcast"
	"github.com/sluice-queue/sluice/internal/checkup"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/migration"
	"github.com/sluice-queue/sluice/internal/room"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// Options configure a Store. The zero value works.
type Options struct {
	// Migrate brings the schema up to date when the store is opened. Default: opening an outdated
	// schema returns a [sluice.ErrNotMigrated].
	Migrate bool
	// CallTimeout is the deadline of every call, with its tries and waits. Default 10 s.
	CallTimeout time.Duration
	// Relaxed trades durability for speed: a power cut may lose the last commits, but never damages
	// the file. Default: every commit is on disk before it is acknowledged.
	Relaxed bool
	// NoStatistics turns counting off: the statistics then contain none of this store's moves.
	// Default: the store counts its moves, and adds them to the statistics every 10 s and at Close.
	// See docs/guide/statistics.md.
	NoStatistics bool
	// Logger gets a line when statistics cannot be stored. Default: [slog.Default].
	Logger *slog.Logger
}

// Store is a [sluice.Store] in a SQLite file. Many goroutines may use it, and many processes of one
// machine may use the file. The interfaces [sluice.Store], [alert.Store], [audit.Store] and
// [forecast.Store] document most of its methods.
type Store struct {
	db          *sql.DB
	ownsDB      bool
	options     Options
	signals     broadcast.Broadcaster
	writer      *writer
	closed      atomic.Bool
	schema      migration.Guard
	batchesSeen atomic.Bool // AdvanceBatches has looked at all batches
	awaited     awaiting.Set
	tally       *counter.Tally // nil: the store counts nothing
	closing     sync.Once
	room        room.Room
	reading     sync.RWMutex // read-locked by each read
	lookUps     statements
	steady      steadyClock
	ahead       flow.Ahead // of claims from queues with a rate
	// waveSlice is how many jobs one statement of a count reads.
	waveSlice int
	// checks are the thresholds of health checks, lookTimeout limits one inspection, and diskOf
	// reads a folder's file system.
	checks      map[string]health.Check
	lookTimeout time.Duration
	diskOf      func(folder string) (diskState, error)

	pruning    sync.Mutex
	pruneFrom  tenantQueueName // the tenant queue after which upkeep continues to look for idle tenant queues
	repairFrom atomic.Int64    // the number after which upkeep continues to look for jobs whose blocker has ended
}

var _ sluice.Store = (*Store)(nil)

// New makes a store of a database that the caller keeps and closes, and checks the schema. Use New
// for a file that the program opens itself, or through an ORM. Any driver of SQLite 3.43 or later
// works, such as mattn/go-sqlite3. The database must allow at least 2 connections, because the
// store keeps 1 for writing. Its transactions should begin as immediate, and wait while the file is
// busy.
func New(ctx context.Context, db *sql.DB, options Options) (*Store, error) {
	if err := sluice.CheckGiven("database", db); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if options.CallTimeout <= 0 {
		options.CallTimeout = 10 * time.Second
	}
	if db.Stats().MaxOpenConnections == 1 {
		return nil, &sluice.InvalidError{Field: "db", Rule: "it allows one connection, and the store needs two; see SetMaxOpenConns"}
	}
	s := &Store{db: db, options: options, waveSlice: waveSlice, checks: checkup.Checks("sqlite"), diskOf: diskOf, lookTimeout: lookTimeout}
	var err error
	if s.writer, err = startWriter(ctx, s); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.begin(ctx); err != nil {
		s.writer.stop()
		return nil, fmt.Errorf("open store: %w", errors.Join(err, s.lookUps.close()))
	}
	if !options.NoStatistics {
		s.tally = counter.New(s, counter.Options{Logger: scrubbed.Logger(options.Logger, nil), Last: options.CallTimeout})
	}
	s.enlist()
	return s, nil
}

// begin checks that this program can use the store.
func (s *Store) begin(ctx context.Context) error {
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	s.schema.Arm(knownSteps())
	return s.startClock(ctx)
}

// Close adds the last counts to the statistics, and closes the store. If the store opened the
// database, Close closes that too. Close waits for running reads; later calls return
// [sluice.ErrUnavailable]. The last process that closes a file leaves everything in that one file,
// without a log beside it.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		s.tally.Close()
		s.closed.Store(true)
		s.delist()
		s.writer.stop()
		s.reading.Lock() // a connection in use would outlive the database, and leave the log behind
		defer s.reading.Unlock()
		err = s.lookUps.close()
		if s.ownsDB {
			err = errors.Join(err, s.db.Close())
		}
	})
	return err
}

// DB returns the database, for the caller's own statements and transactions.
func (s *Store) DB() *sql.DB { return s.db }
