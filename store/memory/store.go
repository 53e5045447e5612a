// Package memory keeps jobs in the memory of one process, for tests, simulations and trials. Its
// jobs end with the process.
//
// Begin with [New]; the zero [Options] work. The [Store] obeys the same rules as the SQL stores,
// and implements [sluice.Store], [alert.Store], [audit.Store] and [forecast.Store]. A test can set
// its clock with Options.Now, or run it in a testing/synctest bubble.
//
// Read next: package storetest for the rules of every store, and packages sqlite and postgres for
// stores that outlive the process.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/internal/awaiting"
	"github.com/sluice-queue/sluice/internal/broadcast"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/rollup"
	"github.com/sluice-queue/sluice/internal/room"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/tenancy"
)

// Options configure a Store. The zero value works.
type Options struct {
	// Now is the store's clock. Default: time.Now, which testing/synctest can fake.
	Now func() time.Time
	// Signal is called with each signal, before the callbacks of Watch. The call runs in the
	// goroutine that caused the signal, so a simulation needs no goroutine to listen. Signal must
	// not block. Default: no call.
	Signal func(sluice.Signal)
	// NoStatistics turns counting off: the statistics then contain none of this store's moves.
	// Default: the store counts its moves, and they appear in the statistics after their bucket of
	// 10 s has ended. See docs/guide/statistics.md.
	NoStatistics bool
}

// Store is a [sluice.Store] in memory. Many goroutines may use it at once. The interfaces
// [sluice.Store], [alert.Store], [audit.Store] and [forecast.Store] document its methods.
type Store struct {
	now     func() time.Time
	signals broadcast.Broadcaster
	awaited awaiting.Set
	heed    func(sluice.Signal)

	mu           sync.Mutex
	closed       bool
	pending      []sluice.Signal // sent after the current call has unlocked the store
	jobs         map[sluice.ID]*job
	held         map[sluice.ID]*job // the jobs that somebody holds
	backlogs     map[string]*backlog
	keys         map[queueKey]keyHold
	behind       map[sluice.ID][]sluice.ID // by job: the jobs that wait until it has ended
	after        map[sluice.ID][]sluice.ID // by job: the jobs that run after it
	chains       map[queueKey][]*job       // by order key: the unfinished jobs, by place
	placed       int64                     // the last place given to a job
	ended        []sluice.ID               // ended jobs whose waiting jobs unblock still has to evaluate
	history      map[class][]ending        // by queue and outcome: ended jobs, the earliest end first
	expiry       dueHeap
	queues       map[string]sluice.Queue
	policy       admission.Policy
	tenants      map[string]tenancy.Tenant
	tiers        map[string]tenancy.Tier
	limits       map[limitsOf]tenancy.Limits
	named        map[string]limit.Limit
	paces        map[string]*pace       // by limit
	limitKeys    map[limitKey]*flow.Key // of limits that are per key; in flight is not kept
	holders      map[string]presence.Holder
	instructions map[presence.Target]presence.Instruction
	leads        map[string]presence.Leader
	audit        []sluice.AuditEntry
	chain        chain
	acts         map[actOn]bool
	strays       []stray                // earliest cancellation first
	waves        []forecast.QueueCounts // the last count
	stats        statistics
	tally        *counter.Tally // nil: the store counts nothing

	operations map[sluice.ID]storedOperation
	schedules  map[string]schedule.Schedule
	batches    map[sluice.ID]*storedBatch
	changed    map[sluice.ID]*storedBatch // batches at which upkeep is to look
	unfinished map[sluice.ID]bool         // batches that are not complete
	tokens     map[string]access.Token
	deadNotes  map[string]deadletter.Note
	alerting   alerting
	room       room.Room
}

// job is all that the store keeps of one job.
type job struct {
	sluice.Job // the current life, or the last one
	live       bool
	keyed      bool        // the job holds its key while it is unfinished
	parked     bool        // the job waits for itself until a limit lets its limit key in
	place      int64       // position in the order of enqueues
	rest       []sluice.ID // the jobs of After for which this job still waits
	token      sluice.Token
	attempts   []sluice.Attempt
	before     *sluice.Job      // the finished life that a requeue replaced
	hold       *jobHold         // nil: nobody holds the job
	report     *progress.Report // how far the attempt has come; nil: the handler has not reported
}

// backlog holds a queue's waiting jobs, its jobs in flight and the state of its rate. If the queue
// serves tenants in turns, the jobs wait in the tenant queues.
type backlog struct {
	waiting
	claimed    map[sluice.ID]*job
	dispatched map[sluice.ID]*job
	stray      int // runs that may be open although their jobs have ended
	pace

	byTenant     bool
	tenantQueues map[string]*tenantQueue
	held         map[string]int // by tenant: runs in flight
	mark         flow.LowWater

	keyed   []sharedLimit       // the limits per key and by cost that the claims of the queue obey
	stopped *flow.Room          // a limit by cost stopped the last claim
	refused map[string]*job     // by limit key: the claim has found no room for a job
	parked  map[string]*waiting // by limit key
}

// pace is the state of a rate.
type pace struct {
	bucket flow.Bucket
	window flow.Window
}

func (l *backlog) inFlight() int { return len(l.claimed) + len(l.dispatched) + l.stray }

type queueKey struct{ queue, key string }

// actOn identifies an act on one job.
type actOn struct{ act, job sluice.ID }

// keyHold is the job that holds a key. Zero until: it holds the key while it is unfinished.
type keyHold struct {
	job   sluice.ID
	until time.Time
}

var _ sluice.Store = (*Store)(nil)

// New makes an empty store.
func New(options Options) *Store {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Signal == nil {
		options.Signal = func(sluice.Signal) {}
	}
	s := &Store{
		now:          options.Now,
		heed:         options.Signal,
		jobs:         make(map[sluice.ID]*job),
		held:         make(map[sluice.ID]*job),
		history:      make(map[class][]ending),
		backlogs:     make(map[string]*backlog),
		keys:         make(map[queueKey]keyHold),
		acts:         make(map[actOn]bool),
		chain:        chain{batches: make(map[batchOf][]byte)},
		behind:       make(map[sluice.ID][]sluice.ID),
		after:        make(map[sluice.ID][]sluice.ID),
		chains:       make(map[queueKey][]*job),
		queues:       make(map[string]sluice.Queue),
		policy:       admission.DefaultPolicy(),
		tenants:      make(map[string]tenancy.Tenant),
		tiers:        make(map[string]tenancy.Tier),
		limits:       make(map[limitsOf]tenancy.Limits),
		named:        make(map[string]limit.Limit),
		paces:        make(map[string]*pace),
		limitKeys:    make(map[limitKey]*flow.Key),
		holders:      make(map[string]presence.Holder),
		instructions: make(map[presence.Target]presence.Instruction),
		leads:        make(map[string]presence.Leader),
		stats:        statistics{last: make(map[string]time.Time), rows: make(rollup.Rows)},

		operations: make(map[sluice.ID]storedOperation),
		schedules:  make(map[string]schedule.Schedule),
		batches:    make(map[sluice.ID]*storedBatch),
		changed:    make(map[sluice.ID]*storedBatch),
		unfinished: make(map[sluice.ID]bool),
		tokens:     make(map[string]access.Token),
		deadNotes:  make(map[string]deadletter.Note),
		alerting:   newAlerting(),
	}
	if !options.NoStatistics {
		s.tally = counter.New(nil, counter.Options{})
	}
	return s
}

// Close closes the store. Every later call returns [sluice.ErrUnavailable].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// enter locks the store for one call. The returned leave unlocks it and sends the signals of the
// call.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, sluice.ErrUnavailable
	}
	return s.leave, nil
}

func (s *Store) leave() {
	signals := s.pending
	s.pending = nil
	s.mu.Unlock()
	for _, signal := range signals {
		s.heed(signal)
		s.signals.Send(signal)
	}
}

func (s *Store) signal(signal sluice.Signal) { s.pending = append(s.pending, signal) }

func (s *Store) backlog(queue string) *backlog {
	l := s.backlogs[queue]
	if l == nil {
		l = &backlog{claimed: make(map[sluice.ID]*job), dispatched: make(map[sluice.ID]*job), held: make(map[string]int), parked: make(map[string]*waiting)}
		s.backlogs[queue] = l
	}
	return l
}

// settings returns the settings of a queue, or the defaults if the queue is not stored.
func (s *Store) settings(queue string) sluice.Settings {
	if q, ok := s.queues[queue]; ok {
		return q.Settings
	}
	return sluice.DefaultSettings()
}

// Watch calls signal for each signal of this store until ctx ends.
func (s *Store) Watch(ctx context.Context, signal func(sluice.Signal)) error {
	if err := sluice.CheckGiven("signal", signal); err != nil {
		return err
	}
	s.signals.Listen(ctx, signal, sluice.Signal{Hearing: sluice.HearsAll})
	return nil
}
