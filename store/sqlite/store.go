// Package sqlite keeps jobs in a SQLite file: one machine, no server, full durability. All writes
// of a process go through one goroutine, which commits the writes of many callers together.
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
	"github.com/sluice-queue/sluice/internal/broadcast"
	"github.com/sluice-queue/sluice/internal/checkup"
	"github.com/sluice-queue/sluice/internal/counter"
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
	// Relaxed trades durability for speed: a power cut may lose the last commits, though never
	// tear one. Default: every commit is on the disk before it is acknowledged.
	Relaxed bool
	// NoStatistics leaves out counting: what this store does then stands in no statistics. Default: the store counts the
	// moves that it makes, and adds them to the statistics each 10 s and at Close; see docs/guide/statistics.md.
	NoStatistics bool
	// Logger gets a line when statistics cannot be stored. Default: slog.Default.
	Logger *slog.Logger
}

// Store is a sluice.Store in a SQLite file. It may be used by many goroutines, and the file by many
// processes of one machine.
type Store struct {
	db      *sql.DB
	ownsDB  bool
	options Options
	signals broadcast.Broadcaster
	writer  *writer
	closed  atomic.Bool
	schema  migration.Guard
	tally   *counter.Tally // nil: nothing is counted
	closing sync.Once
	reading sync.RWMutex // held by reads
	lookUps statements
	steady  steadyClock
	// waveSlice is how many jobs one statement of a count reads.
	waveSlice int
	// checks are what health is judged by, lookTimeout bounds one look, and diskOf tells where the file lies.
	checks      map[string]health.Check
	lookTimeout time.Duration
	diskOf      func(folder string) (diskState, error)

	pruning   sync.Mutex
	pruneFrom lineName     // after which upkeep goes on looking for lines that have nothing to do
	mendFrom  atomic.Int64 // the seq after which upkeep goes on looking for jobs that were left behind
}

var _ sluice.Store = (*Store)(nil)

// New makes a store of a database that the caller keeps and closes, and checks the schema. Any
// driver of SQLite 3.43 or later will do, such as mattn/go-sqlite3: this is how jobs lie in a file that the program opens by
// itself, or by an ORM. The database must allow two connections at least: the store keeps one to write with. Its
// transactions should begin as immediate, and wait when the file is busy.
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

// begin looks whether the store can be worked with.
func (s *Store) begin(ctx context.Context) error {
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	s.schema.Arm(knownSteps())
	return s.startClock(ctx)
}

// Close adds what was counted to the statistics and ends the store, and the database if the store opened it. It waits for reads that are under way, and lets no
// other begin. The last process that closes a file leaves all of it in that one file, without a log beside it.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		s.tally.Close()
		s.closed.Store(true)
		s.delist()
		s.writer.stop()
		s.reading.Lock() // a connection that is in use outlives the database, and leaves the log behind
		defer s.reading.Unlock()
		err = s.lookUps.close()
		if s.ownsDB {
			err = errors.Join(err, s.db.Close())
		}
	})
	return err
}

// DB gives the database, for the caller's own statements and transactions.
func (s *Store) DB() *sql.DB { return s.db }
