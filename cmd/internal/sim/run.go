package sim

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// Run simulates a scenario. The store is package memory unchanged, and the workers claim and settle
// like package worker; only the clock is virtual. The same scenario gives the same report.
func Run(ctx context.Context, scenario Scenario) (Report, error) {
	return Watch(ctx, scenario, func(Progress) {})
}

// Progress is the progress of a run.
type Progress struct {
	// At is the virtual time since the start.
	At time.Duration
	// Jobs is how many jobs have come so far, and Ended how many of them have ended.
	Jobs, Ended int
}

// Watch is [Run] that also calls tell with its progress, once per 4,096 events.
func Watch(ctx context.Context, scenario Scenario, tell func(Progress)) (Report, error) {
	s := &simulation{ctx: ctx, scenario: scenario, tell: tell, draws: newDraws(scenario.Seed), queues: make(map[string]*queue)}
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

	queues    map[string]*queue
	order     []*queue // in the order of the scenario
	processes []*process
	finished  int           // jobs whose history is not pruned yet
	jobs      int           // that came
	ended     int           // jobs that ended
	streams   int           // streams that still bring jobs
	quiet     time.Duration // when to give up if nothing happens until then
}

func (s *simulation) clock() time.Time { return s.scenario.Start.Add(s.now).UTC() }

func (s *simulation) after(d time.Duration, do func()) { s.events.add(s.now+d, false, do) }

// fail ends the run with an error.
func (s *simulation) fail(err error) {
	if err != nil && s.err == nil {
		s.err = err
	}
}

// patience is how long nothing may happen before the run ends with jobs left. Such jobs are in a
// paused queue, or belong to a tenant that may have none in flight.
const patience = 31 * 24 * time.Hour

// moved records that something happens at a moment.
func (s *simulation) moved(at time.Duration) { s.quiet = max(s.quiet, at+patience) }

// looks is how many events pass between two checks whether to end the run.
const looks = 4096

// run processes events until none is left or the scenario's time is over.
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
			return s.err // the remaining jobs will never start
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

// prune drops the history before it outgrows the unfinished jobs. The simulation does not read it.
func (s *simulation) prune() {
	if s.finished < 50_000 || s.finished < s.jobs-s.ended {
		return
	}
	_, err := s.store.Prune(s.ctx, "", s.finished)
	s.fail(err)
	s.finished = 0
}

// expect schedules an arrival.
func (s *simulation) expect(number int, a Arrival) {
	c := &coming{simulation: s, Arrival: a, queue: s.queues[a.Queue], payload: []byte(strconv.Itoa(number)), chance: s.draws.arrival(number)}
	for _, name := range s.scenario.group(a.Tenant) {
		c.tenants = append(c.tenants, c.queue.tenant(name))
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
	queue   *queue
	tenants []*tenant
	payload []byte // the number of the arrival
	chance  interface {
		ExpFloat64() float64
		IntN(int) int
	}
	turn int // index of the tenant of the next job
}

// enqueueBatch is how many jobs are enqueued at a time, as a producer would.
const enqueueBatch = 5000

// bulk enqueues all jobs of an arrival.
func (c *coming) bulk() {
	for left := c.Jobs; left > 0; left -= enqueueBatch {
		c.enqueue(min(left, enqueueBatch))
	}
}

// next enqueues one job of a stream, and schedules the next one.
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

// gap returns the time until the next job of a stream. The first job of a steady stream comes at
// once.
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

// enqueue enqueues jobs. A full queue refuses those that do not fit, as if they came one by one; nobody sends them again.
func (c *coming) enqueue(n int) {
	due := max(c.Due, c.now)
	var jobs []sluice.NewJob
	arrived := make(map[*tenant]int)
	var tenants []*tenant // in order; the order of the map is random
	for range n {
		t := c.tenants[c.turn%len(c.tenants)]
		c.turn++
		if !c.queue.fits(t, len(jobs), arrived[t]) {
			c.queue.refuse(t)
			continue
		}
		if arrived[t]++; arrived[t] == 1 {
			tenants = append(tenants, t)
		}
		jobs = append(jobs, sluice.NewJob{Queue: c.Queue, Payload: c.payload, EnqueueOptions: sluice.EnqueueOptions{
			ID: c.draws.id(c.clock()), Tenant: t.Tenant, DueAt: c.scenario.Start.Add(due), Priority: c.Priority,
		}})
	}
	if len(jobs) == 0 {
		return
	}
	c.jobs += len(jobs)
	c.moved(due)
	for _, t := range tenants {
		c.queue.arrived(t, arrived[t], due)
	}
	fallDue := func() {
		for _, t := range tenants {
			c.queue.due(t, arrived[t], due, c.now)
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
