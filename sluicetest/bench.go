// Package sluicetest tests programs that use Sluice, on a real store in memory and a clock that only the test moves.
//
// Begin with [New], which makes a [Bench]: give its Client to your code, register your handlers on its Worker, and call
// [Bench.Drain] to run the jobs that are due. [Bench.Advance] moves the clock and runs the jobs that fall due meanwhile,
// with their retries: two days take milliseconds. [Bench.Next] breaks the next attempts on purpose. [Run] runs a single
// handler on a made-up job, and [Enqueued] lists the jobs of a queue.
//
// A Bench runs jobs one after the other, in the order in which a worker with one slot claims them. Handlers that wait
// for real time need a testing/synctest bubble and a worker of their own. Read next: docs/guide/test.md.
package sluicetest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// Options configure a [Bench]. The zero value works.
type Options struct {
	// Start is what the clock shows first. Default: 2026-01-01 00:00 UTC.
	Start time.Time
	// Client and Worker are the options of the Bench's client and worker. Default: those of a program, but nothing is
	// logged.
	Client sluice.ClientOptions
	Worker worker.Options
	// Engines run the jobs of queues whose setting `engine` names one. Default: none. An [Engine] does as the test says.
	Engines map[string]engine.Engine
}

// Bench is a store in memory with all that works on one.
type Bench struct {
	// Client enqueues into the store and looks jobs up. Give it to the code under test.
	Client *sluice.Client
	// Worker has the handlers that you register with worker.Handle. Let only the Bench run it.
	Worker *worker.Worker
	// Store is for all functions that take a store, such as explain.Job.
	Store sluice.Store

	t          testing.TB
	engines    map[string]engine.Engine
	upkeep     *upkeep.Upkeep
	dispatcher *dispatcher.Dispatcher

	mu      sync.Mutex
	now     time.Time
	nextDue map[string]time.Time // by queue: when its next job may start
	faults  []Fault
	ended   func() // called when an attempt ends
}

// New makes a Bench. Its methods end the test if the store or an engine fails.
func New(t testing.TB, options Options) *Bench {
	t.Helper()
	if options.Start.IsZero() {
		options.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	quiet := slog.New(slog.DiscardHandler)
	if options.Client.Logger == nil {
		options.Client.Logger = quiet
	}
	if options.Worker.Logger == nil {
		options.Worker.Logger = quiet
	}
	b := &Bench{t: t, now: options.Start, engines: options.Engines, nextDue: make(map[string]time.Time)}
	b.Store = &watched{memory.New(memory.Options{Now: b.Now}), b}
	b.Client = sluice.NewClient(b.Store, options.Client)
	options.Worker.Middleware = append([]worker.Middleware{b.meetFault}, options.Worker.Middleware...)
	b.Worker = worker.New(b.Store, options.Worker)
	b.upkeep = upkeep.New(b.Store, upkeep.Options{Logger: quiet, Engines: options.Engines})
	b.dispatcher = dispatcher.New(b.Store, dispatcher.Options{Logger: quiet, Engines: options.Engines})
	return b
}

// Now returns what the clock shows.
func (b *Bench) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// Drain runs all jobs that may start now, also those that they enqueue, and returns how many attempts there were. Upkeep
// does its work too, and jobs of engines are dispatched and followed.
func (b *Bench) Drain() (ran int) {
	b.t.Helper()
	for {
		b.doUpkeep()
		got, err := b.Worker.Once(b.t.Context())
		if err != nil {
			b.t.Fatalf("run the due jobs: %v", err)
		}
		got += b.dispatch()
		if ran += got; got == 0 {
			return ran
		}
	}
}

// Advance moves the clock on, fires schedules at their instants, and runs each job at the instant at which it may start. It
// returns how many attempts there were.
func (b *Bench) Advance(by time.Duration) (ran int) {
	b.t.Helper()
	ran = b.Drain()
	for end := b.Now().Add(by); ; {
		next := b.nextStep(b.nextFire(end))
		b.moveTo(next)
		ran += b.Drain()
		if !next.Before(end) {
			return ran
		}
	}
}

// Next breaks the next attempts of all handlers, one fault each.
func (b *Bench) Next(faults ...Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, faults...)
}

func (b *Bench) moveTo(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
}

// nextFire returns when the next schedule fires, and at the latest end.
func (b *Bench) nextFire(end time.Time) time.Time {
	b.t.Helper()
	schedules, err := schedule.List(b.t.Context(), b.Store, schedule.Filter{Limit: 10_000})
	if err != nil {
		b.t.Fatalf("read the schedules: %v", err)
	}
	for _, s := range schedules {
		if s.NextAt.After(b.Now()) && s.NextAt.Before(end) {
			end = s.NextAt
		}
	}
	return end
}

// nextStep returns when a job may start next, and at the latest end.
func (b *Bench) nextStep(end time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, due := range b.nextDue {
		if due.After(b.now) && due.Before(end) {
			end = due
		}
	}
	return end
}

func (b *Bench) doUpkeep() {
	b.t.Helper()
	if _, err := b.upkeep.Once(b.t.Context(), true); err != nil {
		b.t.Fatalf("upkeep: %v", err)
	}
}

// dispatch hands the due jobs of engines to them.
func (b *Bench) dispatch() (jobs int) {
	b.t.Helper()
	if len(b.engines) == 0 {
		return 0
	}
	queues, err := b.Client.Queues(b.t.Context(), sluice.QueueFilter{})
	if err != nil {
		b.t.Fatalf("read the queues: %v", err)
	}
	for _, q := range queues {
		if _, ours := b.engines[q.Settings.Engine]; !ours {
			continue
		}
		cycle, err := b.dispatcher.Once(b.t.Context(), q.Name)
		if err != nil {
			b.t.Fatalf("dispatch the jobs of queue %q: %v", q.Name, err)
		}
		jobs += cycle.Claimed
	}
	return jobs
}

// watched notes when the next job of each queue may start.
type watched struct {
	*memory.Store
	bench *Bench
}

// Unwrap returns the store in memory.
func (w *watched) Unwrap() sluice.Store { return w.Store }

// Claim claims from the store in memory.
func (w *watched) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	claimed, err := w.Store.Claim(ctx, request)
	if err == nil && len(claimed.Jobs) == 0 {
		b := w.bench
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.nextDue, request.Queue)
		if claimed.NextDue >= 0 {
			b.nextDue[request.Queue] = b.now.Add(claimed.NextDue)
		}
	}
	return claimed, err
}

// meetFault is the outermost middleware of the worker.
func (b *Bench) meetFault(ctx context.Context, job *worker.Job[any], next func(context.Context) error) error {
	b.mu.Lock()
	var fault Fault
	if len(b.faults) > 0 {
		fault = b.faults[0]
		b.faults = slices.Delete(b.faults, 0, 1)
	}
	b.mu.Unlock()
	if b.ended != nil {
		defer b.ended()
	}
	if fault.meet == nil {
		return next(ctx)
	}
	return fault.meet(b, ctx, job, next)
}
