package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

// Again makes another store on the same connections. The connections stay open when the new store is closed.
func (s *Store) Again(ctx context.Context) (*Store, error) {
	return open(ctx, s.pool, s.session, s.options)
}

// OpenConfig opens a store with a configuration that a test has changed.
var OpenConfig = openConfig

// StatementOf returns a statement by the name of its file.
var StatementOf = statementOf

// WalkInOrder is the statement that runs before each statement of the store.
var WalkInOrder = walkInOrderSQL

// Closed reports whether the store was closed.
func (s *Store) Closed() bool { return s.closed.Load() }

// ForgetLowWater makes the next claims walk from the front. Tests that move everything stored into the past call it,
// because marks are positions in time.
func (s *Store) ForgetLowWater() {
	for _, m := range []*lowWater{&s.lowWater, &s.tenantQueueLowWater, &s.changeCursor, &s.staleCursor} {
		m.mu.Lock()
		m.queues = nil
		m.mu.Unlock()
	}
	s.fires.mu.Lock()
	s.fires.at = time.Time{}
	s.fires.mu.Unlock()
}

// SliceWaves makes counts of waves read that many jobs at a time.
func (s *Store) SliceWaves(jobs int64) { s.waveSlice = jobs }

// WalkedFor makes the store believe that the last full walks through the tenant changes of a queue took cost each.
// Costly walks are put off.
func (s *Store) WalkedFor(queue string, cost time.Duration) {
	for range keptWalks {
		s.changeCursor.walked(queue, cost, true)
	}
}

// FrontEvery returns the least time between two claims of a queue that walk from the front.
func (s *Store) FrontEvery(queue string) time.Duration {
	s.lowWater.mu.Lock()
	defer s.lowWater.mu.Unlock()
	return s.lowWater.queue(queue).frontEvery()
}

// RestsAfter returns the least time from claims with these durations, which walked from the front, to the next one.
// looks counts looks from the front since; their least time is the second result.
func RestsAfter(walks []time.Duration, looks int) (claim, look time.Duration) {
	var m lowWater
	for _, took := range walks {
		m.walked("q", took, true)
	}
	q := m.queue("q")
	for range looks {
		q.peekedAt = time.Time{}
		m.peek([]string{"q"})
	}
	return q.frontEvery(), q.lookEvery()
}

// FunctionsChecksum returns the checksum of the functions' text.
func FunctionsChecksum() (string, error) {
	set, err := functionSet()
	return set.checksum, err
}

// JudgeHealth changes the limits of a health check, so that a test need not wait for an hour.
func (s *Store) JudgeHealth(check string, warning float64) {
	changed := s.checks[check]
	changed.Warning, changed.Error = warning, 0
	s.checks[check] = changed
}

// EstimateIndexes makes Health estimate the empty share of indexes from that size in bytes on.
func (s *Store) EstimateIndexes(from int64) { s.bigIndex = from }

// MadeIndexes maps the name of each index of the schema to the statement that makes it. Tables lists the tables.
func MadeIndexes() (indexes map[string]string, tables []string, err error) {
	made, err := readSchema()
	indexes = make(map[string]string)
	for _, index := range made.indexes {
		indexes[index.name] = index.repair()
	}
	return indexes, made.tables, err
}

// Statement returns a statement as reports show it.
func Statement(text string) string { return statement(text) }

// LookFor changes the time limit of a single health check.
func (s *Store) LookFor(most time.Duration) { s.lookTimeout = most }

// MigrationTable makes the table of the schema steps that a database has.
const MigrationTable = createMigrationTable

// StepServer makes this process believe that the server's clock was set forward since it last looked.
func (s *Store) StepServer(d time.Duration) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	s.clock.most = s.clock.most.Add(-d)
}

// EndSecondLook ends the time after a step of the server's clock in which no lease counts as run out.
func (s *Store) EndSecondLook() {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	s.clock.quiet = time.Time{}
}

// StepWindows makes this process believe that the server's clock was set forward since it last applied the limits of a
// queue.
func (s *Store) StepWindows(d time.Duration) {
	s.readings.Range(func(queue, last any) bool {
		before := last.(flow.Reading)
		before.StoreTime = before.StoreTime.Add(-d)
		s.readings.Store(queue, before)
		return true
	})
}

// FunctionSignatures lists the functions that a migration makes, with the types of their arguments.
func FunctionSignatures() ([]string, error) {
	set, err := functionSet()
	var out []string
	for _, made := range madeFunctions(set.text) {
		out = append(out, made.String())
	}
	return out, err
}

// WaitForEnqueues sets how long calls wait for running calls before they start beside them.
func (s *Store) WaitForEnqueues(patience time.Duration) { s.groups.patience = patience }

// WaitingEnqueues counts the calls that wait to share a transaction.
func (s *Store) WaitingEnqueues() int {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	return len(s.groups.waiting)
}

// HurryPlans makes connections plan anew after each statement.
func (s *Store) HurryPlans() { s.pool.plans.slow, s.pool.plans.age = 0, 0 }

// PlansAnew returns when a connection plans anew. The connection is used each 100 ms for a while, and slow says when a
// statement is slow.
func PlansAnew(while time.Duration, slow func(after time.Duration) bool) (made []time.Duration) {
	age := planAge{since: time.Unix(0, 0)}
	for after := time.Duration(0); after <= while; after += 100 * time.Millisecond {
		age.slow = age.slow || slow(after)
		next, anew := age.anew(time.Unix(0, int64(after)), minPlanAge)
		if anew {
			made = append(made, after)
		}
		age = next
	}
	return made
}

// AgePlans makes a connection believe that it prepared its statements that long ago.
func AgePlans(conn *pgx.Conn, age time.Duration) {
	data := conn.PgConn().CustomData()
	for key, value := range data {
		if made, is := value.(time.Time); is {
			data[key] = made.Add(-age)
		}
	}
}

// DueSignals returns the queues whose signals are sent now, in order. Signals of the queues in lately were sent just
// before.
func (s *Store) DueSignals(queues []string, lately []string) []string {
	n := &notifier{store: s, wake: make(chan struct{}, 1), pending: make(map[message]bool), sent: make(pace[message])}
	now := time.Now()
	for _, queue := range lately {
		n.add(sluice.Signal{Queue: queue})
		for text := range n.pending {
			n.sent[text] = now.Add(time.Hour)
		}
		clear(n.pending)
	}
	for _, queue := range queues {
		n.add(sluice.Signal{Queue: queue})
	}
	var out []string
	for _, text := range n.due()[channel] {
		received, _ := n.parse("another" + text)
		out = append(out, received.Queue)
	}
	slices.Sort(out)
	return out
}

// CountCrowds counts the processes that serve each queue now.
func (s *Store) CountCrowds(ctx context.Context) error { return s.countCrowds(ctx) }

// MostPutOff is the longest time by which a process puts off a claim of a crowded queue.
const MostPutOff = crowdMost

// BusyRest is the least time by which a process puts off a claim while signals follow each other.
const BusyRest = crowdBusy

// HearInterval and HearAtOnce pace signals.
const (
	HearInterval = hearInterval
	HearAtOnce   = hearAtOnce
)

// Sender is the name of the store in its signals.
func (s *Store) Sender() string { return s.notifier.sender }

// Pace returns how long a signal must wait at an instant. With 0 it is sent at once.
func Pace() func(now time.Time) time.Duration {
	p := make(pace[string])
	return func(now time.Time) time.Duration { return p.wait("q", now) }
}

// Hear tells the store whether it hears signals.
func (s *Store) Hear(hears bool) { s.crowds.hear(hears) }

// ReportsTaken reports whether the store would tell others that it took all jobs of a queue. The queue was signalled
// just before.
func (s *Store) ReportsTaken(queue string) bool {
	s.crowds.signalled(queue)
	return s.crowds.takes(queue, 0)
}

// FollowUp sends two signals of a queue that n processes serve, one right after the other. Anew is whether each signal
// begins the delay of a look anew, and least the shortest delay. Tells is whether a claim would say that all is taken.
func FollowUp(n int) (anew bool, least time.Duration, tells bool) {
	var c crowds
	c.hear(true)
	c.set(map[string]int{"q": n})
	c.signalled("q")
	least = time.Hour
	for range 100 {
		var wait time.Duration
		if wait, anew = c.signalled("q"); wait > 0 {
			least = min(least, wait)
		}
	}
	return anew, least, c.takes("q", 0)
}

// Carries counts how many enqueues, each into another queue, may carry a signal if they follow each other at once.
func Carries(n int) (carry int) {
	of := &notifier{pending: make(map[message]bool), sent: make(pace[message]), turns: make(pace[struct{}])}
	for i := range n {
		of.carries = time.Time{} // leaves out the pause after each one
		if of.carry(fmt.Sprint(i)) != "" {
			carry++
		}
	}
	return carry
}

// MissesWhatCame makes a claim take all jobs of a queue. Then a signal comes before the others hear of the claim, while
// the queue's processes are counted anew. The result is whether the store knows that the others may miss the signal.
func MissesWhatCame(processes int, counts ...int) bool {
	of := func(n int) map[string]int {
		if n == 0 {
			return nil
		}
		return map[string]int{"q": n}
	}
	var c crowds
	c.hear(true)
	c.set(of(processes))
	c.signalled("q")
	before := c.before(sluice.ClaimRequest{Queue: "q", Limit: 9})
	c.takes("q", before["q"])
	c.signalled("q")
	for _, n := range counts {
		c.set(of(n))
	}
	return c.missed("q")
}

// KnowOneStepMore makes this process a program of the next version. It knows one schema step more, with these
// statements, for programs that know worksFrom steps. undo makes it the present version again. Tests that call it run
// alone.
func KnowOneStepMore(statements string, worksFrom int) (undo func()) {
	present := schemaSteps
	steps, err := present()
	next := sluice.Migration{Version: len(steps) + 1, Name: "of the next version", SQL: statements, Checksum: fmt.Sprintf("%x", sha256.Sum256([]byte(statements))), WorksFrom: worksFrom}
	steps = append(slices.Clone(steps), next)
	schemaSteps = func() ([]sluice.Migration, error) { return steps, err }
	return func() { schemaSteps = present }
}

// PauseCarrying makes enqueues carry no signals for a while.
func (s *Store) PauseCarrying(pause time.Duration) { s.notifier.carried(pause) }
