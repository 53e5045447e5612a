// Package forward moves the jobs of queues from a local store to a central one, whenever that can be reached: who
// enqueues never waits for the network. A job arrives once, by its id, and those of an order key in their order.
// It takes any two stores; a program that links SQLite alone stays so.
package forward

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// Engine is what the local store has for the engine of a job that is on its way, before a slash and the centre's name.
const Engine = "forward"

// Options adjust a Forwarder. Queues is required; the rest of the zero value works.
type Options struct {
	// Queues are those whose jobs are forwarded, all of them: no worker is needed for them here.
	Queues []string
	// Centre names the central store. It is noted with each job that is on its way, and only a forwarder with the same
	// centre goes on with it. Default "centre".
	Centre string
	// Batch is how many jobs go in one call at the most. Default 500.
	Batch int
	// Poll is how often the local store is looked at in which nothing waited. Default 1 s.
	Poll time.Duration
	// Lease is after how long another forwarder goes on with the jobs of one that died. Default 1 m.
	Lease time.Duration
	// CallTimeout is the deadline of every call to one of the stores. Default 30 s.
	CallTimeout time.Duration
	// Backoff says how long the centre is left alone after the first, second, … call in a row that failed. Default
	// from 1 s, doubling, to 1 m, and up to 1 s more by chance.
	Backoff sluice.Backoff
	// Drain is how long Run goes on with what was begun when its context ended. Default 30 s.
	Drain time.Duration
	// PayloadChecker checks the payloads of queues that have a payload_schema at the centre. Default: none.
	PayloadChecker sluice.PayloadChecker
	// Logger gets one line per event; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
	// LogLimit is how many lines of an event are logged for one queue within 10 s; of those beyond it only the number is.
	// Default 10, negative: all.
	LogLimit int
	// Scrub removes secrets and personal data from errors, stacks and reasons before they are stored or logged. That
	// of a scrub.Scrubber may leave some in, scrub.Nothing leaves all. Default: scrub.Text.
	Scrub func(text string) string
}

func (o Options) withDefaults() Options {
	defaultTo(&o.Centre, "centre")
	defaultTo(&o.Batch, 500)
	defaultTo(&o.Poll, time.Second)
	defaultTo(&o.Lease, time.Minute)
	defaultTo(&o.CallTimeout, 30*time.Second)
	defaultTo(&o.Backoff, sluice.Backoff{Base: time.Second, Factor: 2, Max: time.Minute, Jitter: time.Second})
	defaultTo(&o.Drain, 30*time.Second)
	o.Logger = scrubbed.Logger(o.Logger, o.Scrub)
	return o
}

func defaultTo[T comparable](value *T, otherwise T) {
	var unset T
	if *value == unset {
		*value = otherwise
	}
}

// Forwarder moves jobs from one store to another. Run does the work. Any number may run side by side.
type Forwarder struct {
	local   sluice.Store
	centre  sluice.Store
	client  *sluice.Client // of the centre
	options Options
	wrong   error // with the options
	running safe.Running
	live    *sluice.LiveSettings // of the local store
	log     *event.Log
	holder  sluice.Holder
	lanes   []*lane
}

// New makes a forwarder. It does no reading or writing itself.
func New(local, centre sluice.Store, options Options) *Forwarder {
	wrong := safe.Options(options, "LogLimit")
	options = options.withDefaults()
	local, centre = scrubbed.Store(local, options.Scrub), scrubbed.Store(centre, options.Scrub)
	holder := sluice.NewHolderID()
	f := &Forwarder{
		local: local, centre: centre, options: options, wrong: wrong,
		client: sluice.NewClient(centre, sluice.ClientOptions{PayloadChecker: options.PayloadChecker, Logger: options.Logger}),
		live:   sluice.NewLiveSettings(local, sluice.LiveOptions{Logger: options.Logger}),
		log:    event.NewLog(options.Logger, holder, options.LogLimit),
		holder: sluice.Holder{ID: holder, Role: sluice.RoleForwarder, Queues: options.Queues},
	}
	for _, queue := range options.Queues {
		f.lanes = append(f.lanes, &lane{queue: queue, wake: make(chan struct{}, 1)})
	}
	return f
}

// engine is what the local store has for the engine of jobs that are on their way to this centre.
func (f *Forwarder) engine() string { return Engine + "/" + f.options.Centre }

func (f *Forwarder) check() error {
	if err := sluice.CheckGiven("store", f.local); err != nil {
		return fmt.Errorf("forwarder: local: %w", err)
	}
	if err := sluice.CheckGiven("store", f.centre); err != nil {
		return fmt.Errorf("forwarder: centre: %w", err)
	}
	if f.wrong != nil {
		return fmt.Errorf("forwarder: %w", f.wrong)
	}
	if len(f.options.Queues) == 0 {
		return &sluice.InvalidError{Field: "queues", Rule: "name those whose jobs are to be forwarded"}
	}
	for _, queue := range f.options.Queues {
		if err := sluice.CheckQueueName(queue); err != nil {
			return err
		}
	}
	return nil
}

// Run forwards until ctx ends, and returns nil then. While the centre cannot be reached, jobs stay where they are, no
// attempt is counted, and it is tried again after a while. What was begun is ended, for as long as Drain says; what is
// then left goes on when somebody forwards again.
func (f *Forwarder) Run(ctx context.Context) error {
	if err := f.check(); err != nil {
		return err
	}
	end, err := f.running.Begin()
	if err != nil {
		return fmt.Errorf("forwarder: %w", err)
	}
	defer end()
	work, quit := context.WithCancel(context.WithoutCancel(ctx))
	defer quit()
	defer f.log.Flush()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(f.options.Drain, quit) })()
	var lanes, beside sync.WaitGroup
	besideCtx, stop := context.WithCancel(work)
	beside.Go(func() { f.watch(besideCtx) })
	beside.Go(func() { f.keep(besideCtx) })
	for _, l := range f.lanes {
		lanes.Go(func() { f.serve(ctx, work, l) })
	}
	lanes.Wait()
	stop()
	beside.Wait()
	f.leave(work)
	return nil
}

// Once forwards what waits now, and returns how much that was. A centre that cannot be reached is an error.
func (f *Forwarder) Once(ctx context.Context) (Sent, error) {
	var all Sent
	if err := f.check(); err != nil {
		return all, err
	}
	defer f.log.Flush()
	keeping, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { f.keep(keeping) })
	defer beside.Wait()
	defer stop()
	defer f.leave(ctx)
	for _, l := range f.lanes {
		for {
			sent, err := f.cycle(ctx, l)
			all.add(sent)
			if err != nil {
				return all, err
			}
			if sent.Claimed == 0 {
				break
			}
		}
	}
	return all, nil
}

// serve forwards the jobs of one queue, cycle after cycle, until ctx ends.
func (f *Forwarder) serve(ctx, work context.Context, l *lane) {
	failures := 0
	var since time.Time
	for ctx.Err() == nil {
		sent, err := f.cycle(work, l)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if failures++; failures == 1 {
				since = time.Now()
				f.log.Tell(event.NotForwarded, l.queue, "error", err)
			}
			l.rest(ctx, f.options.Backoff.Delay(failures), false)
		default:
			if failures > 0 {
				f.log.Tell(event.ForwardingAgain, l.queue, "duration", time.Since(since).Round(time.Second))
			}
			failures = 0
			if sent.Claimed == 0 {
				l.rest(ctx, f.options.Poll, true)
			}
		}
	}
}

// call gives one call of a store its deadline.
func (f *Forwarder) call(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.options.CallTimeout)
	defer cancel()
	return do(ctx)
}
