// Package memory keeps jobs in the memory of one process: for tests, simulations and trying things
// out. Nothing outlives the process. It obeys the same rules as the SQL stores.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/internal/broadcast"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/rollup"
)

// Options adjust a Store. The zero value works.
type Options struct {
	// Now is the store's clock. Default: time.Now, which testing/synctest can fake.
	Now func() time.Time
	// Signal is called with each signal, before those who Watch hear of it. It runs where the signal was
	// given rise to, so that a simulation needs no goroutine to listen. It must not block. Default: nobody.
	Signal func(sluice.Signal)
	// NoStatistics leaves out counting: what this store does then stands in no statistics. Default: the store counts the
	// moves that it makes, and they stand in its statistics when their slot of 10 s is over; see docs/guide/statistics.md.
	NoStatistics bool
}

// Store is a sluice.Store in memory. It may be used by many goroutines.
type Store struct {
	now     func() time.Time
	signals broadcast.Broadcaster
	heed    func(sluice.Signal)

	mu      sync.Mutex
	closed  bool
	pending []sluice.Signal // sent when the verb under way has left
	jobs    map[sluice.ID]*job
	lanes   map[string]*lane
	keys    map[queueKey]keyHold
	behind  map[sluice.ID][]sluice.ID // by job: those that wait until it has ended
	after   map[sluice.ID][]sluice.ID // by job: those that are to run after it
	chains  map[queueKey][]*job       // by order key: the unfinished jobs, by place
	placed  int64                     // the last place that was given away
	ended   []sluice.ID               // jobs that have ended, and those behind them were not all looked at
	history map[class][]ending        // by queue and outcome: what ended, the first first
	expiry  dueHeap
	queues  map[string]sluice.Queue
	policy  sluice.QueuePolicy
	tenants map[string]sluice.Tenant
	tiers   map[string]sluice.Tier
	limits  map[limitsOf]sluice.TenantLimits
	holders map[string]sluice.Holder
	leads   map[string]sluice.Lead
	audit   []sluice.AuditEntry
	chain   chain
	acts    map[actOn]bool
	strays  []sluice.StrayRun      // the first that was cancelled first
	waves   []forecast.QueueCounts // what was last counted
	stats   statistics
	tally   *counter.Tally // nil: nothing is counted

	operations map[sluice.ID]operation
	alerting   alerting
}

// job is all that is known of one job.
type job struct {
	sluice.Job // the present life, or the last one
	live       bool
	keyed      bool        // it holds its key while it is unfinished
	place      int64       // in the order of enqueues
	rest       []sluice.ID // of After: those that it still waits for
	token      sluice.Token
	attempts   []sluice.Attempt
	before     *sluice.Job // the life that a requeue of a finished job left
}

// lane is a queue's waiting jobs, those in flight, and what its rate allows. The jobs wait in the lines of
// their tenants, if the queue tells these apart.
type lane struct {
	waiting
	claimed    map[sluice.ID]*job
	dispatched map[sluice.ID]*job
	stray      int // runs of jobs that have ended; those may be open
	bucket     flow.Bucket
	window     flow.Window

	byTenant bool
	lines    map[string]*line
	held     map[string]int // by tenant: how many runs are in flight
	mark     flow.Mark
}

func (l *lane) inFlight() int { return len(l.claimed) + len(l.dispatched) + l.stray }

type queueKey struct{ queue, key string }

// actOn is what somebody did to one job.
type actOn struct{ act, job sluice.ID }

// keyHold says which job holds a key; a zero until means while it is unfinished.
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
		now:     options.Now,
		heed:    options.Signal,
		jobs:    make(map[sluice.ID]*job),
		history: make(map[class][]ending),
		lanes:   make(map[string]*lane),
		keys:    make(map[queueKey]keyHold),
		acts:    make(map[actOn]bool),
		chain:   chain{batches: make(map[batchOf][]byte)},
		behind:  make(map[sluice.ID][]sluice.ID),
		after:   make(map[sluice.ID][]sluice.ID),
		chains:  make(map[queueKey][]*job),
		queues:  make(map[string]sluice.Queue),
		policy:  sluice.DefaultQueuePolicy(),
		tenants: make(map[string]sluice.Tenant),
		tiers:   make(map[string]sluice.Tier),
		limits:  make(map[limitsOf]sluice.TenantLimits),
		holders: make(map[string]sluice.Holder),
		leads:   make(map[string]sluice.Lead),
		stats:   statistics{last: make(map[string]time.Time), rows: make(rollup.Rows)},

		operations: make(map[sluice.ID]operation),
		alerting:   newAlerting(),
	}
	if !options.NoStatistics {
		s.tally = counter.New(nil, counter.Options{})
	}
	return s
}

// Close ends the store; every later call gives ErrUnavailable.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// enter locks the store for one verb; leave sends the signals that the verb gave rise to.
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

func (s *Store) lane(queue string) *lane {
	l := s.lanes[queue]
	if l == nil {
		l = &lane{claimed: make(map[sluice.ID]*job), dispatched: make(map[sluice.ID]*job), held: make(map[string]int)}
		s.lanes[queue] = l
	}
	return l
}

// settings gives those of a queue; one that is not stored has the defaults.
func (s *Store) settings(queue string) sluice.Settings {
	if q, ok := s.queues[queue]; ok {
		return q.Settings
	}
	return sluice.DefaultSettings()
}

// Watch gives the signals of this store until ctx ends.
func (s *Store) Watch(ctx context.Context, signal func(sluice.Signal)) error {
	if err := sluice.CheckGiven("signal", signal); err != nil {
		return err
	}
	s.signals.Listen(ctx, signal, sluice.Signal{Hearing: sluice.HearsAll})
	return nil
}
