package sim

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// Run simulates a scenario. Its store is the memory store as it is, and its workers claim and settle as
// package worker does; only the clock is not real. The same scenario gives the same report.
func Run(ctx context.Context, scenario Scenario) (Report, error) {
	return Watch(ctx, scenario, func(Progress) {})
}

// Progress tells how far a run is.
type Progress struct {
	// At is the virtual time since the start.
	At time.Duration
	// Jobs came in so far, and Ended of them are finished.
	Jobs, Ended int
}

// Watch is Run, and tells how far it is, many times a second.
func Watch(ctx context.Context, scenario Scenario, tell func(Progress)) (Report, error) {
	s := &simulation{ctx: ctx, scenario: scenario, tell: tell, draws: newDraws(scenario.Seed), lanes: make(map[string]*lane)}
	s.store = memory.New(memory.Options{Now: func() time.Time { return s.clock() }, Signal: s.heed})
	s.client = sluice.NewClient(s.store, sluice.ClientOptions{})
	if err := s.prepare(); err != nil {
		return Report{}, fmt.Errorf("prepare: %w", err)
	}
	s.hire()
	for i, a := range scenario.Arrivals {
		s.expect(i, a)
	}
	if err := s.run(); err != nil {
		return Report{}, fmt.Errorf("at %s, %s from the start: %w", s.clock().Format(time.RFC3339), s.now, err)
	}
	return s.report(), nil
}

// simulation is a run under way.
type simulation struct {
	ctx      context.Context
	scenario Scenario
	store    *memory.Store
	client   *sluice.Client
	draws    *draws
	tell     func(Progress)

	now    time.Duration // since the start
	events events
	err    error // ends the run

	lanes     map[string]*lane
	order     []*lane // as the scenario names them
	processes []*process
	finished  int           // jobs whose history is not pruned yet
	jobs      int           // that came in
	ended     int           // of those
	streams   int           // that still bring jobs
	quiet     time.Duration // when to give up, if nothing happens until then
}

func (s *simulation) clock() time.Time { return s.scenario.Start.Add(s.now).UTC() }

func (s *simulation) after(d time.Duration, do func()) { s.events.add(s.now+d, false, do) }

// fail ends the run with an error.
func (s *simulation) fail(err error) {
	if err != nil && s.err == nil {
		s.err = err
	}
}

// patience is how long nothing may happen before the run ends with jobs left: those of a queue that
// stays paused, or of a tenant that may have none in flight.
const patience = 31 * 24 * time.Hour

// moved notes that something happens at a moment.
func (s *simulation) moved(at time.Duration) { s.quiet = max(s.quiet, at+patience) }

// looks is how often it is asked whether the run should end, in events.
const looks = 4096

// run lets happen what happens, until nothing is left or the scenario's time is over.
func (s *simulation) run() error {
	for n := 0; ; n++ {
		e, more := s.events.take()
		if !more {
			return s.err
		}
		if s.scenario.Until > 0 && e.at > s.scenario.Until {
			s.now = s.scenario.Until
			return s.err
		}
		if s.streams == 0 && e.at > s.quiet {
			return s.err // what is left will never start
		}
		s.now = e.at
		e.do()
		if n%looks == 0 {
			s.fail(s.ctx.Err())
			s.prune()
			s.tell(Progress{s.now, s.jobs, s.ended})
		}
		if s.err != nil {
			return s.err
		}
	}
}

// prune drops the history, which nobody asks for, before it outgrows what is unfinished.
func (s *simulation) prune() {
	if s.finished < 50_000 || s.finished < s.jobs-s.ended {
		return
	}
	_, err := s.store.Prune(s.ctx, "", s.finished)
	s.fail(err)
	s.finished = 0
}

// expect plans an arrival.
func (s *simulation) expect(number int, a Arrival) {
	c := &coming{simulation: s, Arrival: a, lane: s.lanes[a.Queue], payload: []byte(strconv.Itoa(number)), chance: s.draws.arrival(number)}
	for _, name := range s.scenario.group(a.Tenant) {
		c.tenants = append(c.tenants, c.lane.tenant(name))
	}
	if a.Jobs > 0 {
		s.moved(a.At)
		s.events.add(a.At, true, c.bulk)
		return
	}
	if first := a.From + c.gap(true); first < a.To {
		s.streams++
		s.events.add(first, true, c.next)
	}
}

// coming is an arrival under way.
type coming struct {
	*simulation
	Arrival
	lane    *lane
	tenants []*tenant
	payload []byte // the number of the arrival
	chance  interface {
		ExpFloat64() float64
		IntN(int) int
	}
	turn int // of the tenant whose job is next
}

// enqueueBatch is how many jobs are enqueued at a time, as a producer would.
const enqueueBatch = 5000

// bulk enqueues all jobs of an arrival.
func (c *coming) bulk() {
	for left := c.Jobs; left > 0; left -= enqueueBatch {
		c.enqueue(min(left, enqueueBatch))
	}
}

// next enqueues one job of a stream, and plans the one after it.
func (c *coming) next() {
	if c.Pattern == poisson {
		c.turn = c.chance.IntN(len(c.tenants))
	}
	c.streams--
	c.enqueue(1)
	if at := c.now + c.gap(false); at < c.To {
		c.streams++
		c.events.add(at, true, c.next)
	}
}

// gap is how long it takes until the next job of a stream comes. The first of a steady one comes at once.
func (c *coming) gap(first bool) time.Duration {
	mean := float64(time.Second) / c.Rate.PerSecond()
	switch {
	case c.Pattern == poisson:
		mean *= c.chance.ExpFloat64()
	case first:
		mean = 0
	}
	return time.Duration(mean)
}

func (c *coming) enqueue(n int) {
	due := max(c.Due, c.now)
	jobs := make([]sluice.NewJob, n)
	arrived := make(map[*tenant]int)
	var tenants []*tenant // in order; that of the map is by chance
	for i := range jobs {
		t := c.tenants[c.turn%len(c.tenants)]
		c.turn++
		if arrived[t]++; arrived[t] == 1 {
			tenants = append(tenants, t)
		}
		jobs[i] = sluice.NewJob{Queue: c.Queue, Payload: c.payload, EnqueueOptions: sluice.EnqueueOptions{
			ID: c.draws.id(c.clock()), Tenant: t.Tenant, DueAt: c.scenario.Start.Add(due), Priority: c.Priority,
		}}
	}
	c.jobs += n
	c.moved(due)
	for _, t := range tenants {
		c.lane.arrived(t, arrived[t], due)
	}
	fallDue := func() {
		for _, t := range tenants {
			c.lane.due(t, arrived[t], due, c.now)
		}
	}
	if due > c.now {
		c.events.add(due, true, fallDue)
	} else {
		fallDue()
	}
	_, err := c.client.EnqueueMany(c.ctx, jobs)
	c.fail(err)
}
