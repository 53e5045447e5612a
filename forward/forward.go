// Package forward moves the jobs of queues from a local store to a central one, whenever the centre is
// reachable. Callers that enqueue locally never wait for the network.
//
// Begin with [New] and [Forwarder.Run]; [Forwarder.Once] forwards the waiting jobs and returns. A job arrives
// once, by its id, and jobs of an order key arrive in their order. [StatusOf] counts the jobs that still wait.
//
// The package works with any two stores. A program that imports only the SQLite store links no other. Next,
// read docs/guide/edge.md.
package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/obey"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/scrubbed"
	"github.com/sluice-queue/sluice/presence"
)

// Engine is the local store's engine name for jobs being sent, followed by a slash and the centre's name.
const Engine = "forward"

// Options adjust a [Forwarder]. Queues is required; zero values of the other fields work.
type Options struct {
	// Queues are the queues whose jobs are forwarded, all of them. They need no local worker.
	Queues []string
	// Centre names the central store. The name is stored with each job being sent, and only a forwarder with
	// the same centre continues the job. Default "centre".
	Centre string
	// Batch is the most jobs that one call sends. Default 500.
	Batch int
	// Poll is how often to look at the local store when nothing waits. Default 1 s.
	Poll time.Duration
	// Lease is the time after which another forwarder continues the jobs of a dead one. Default 1 m.
	Lease time.Duration
	// CallTimeout is the deadline of every call to one of the stores. Default 30 s.
	CallTimeout time.Duration
	// Backoff is the pause after the first, second, … failed call in a row. Default: from 1 s, doubling, to 1
	// m, plus up to 1 s at random.
	Backoff sluice.Backoff
	// Drain is how long Run continues work in progress after its context has ended. Default 30 s.
	Drain time.Duration
	// PayloadChecker checks the payloads of queues that have a payload_schema at the centre. Default: none.
	PayloadChecker sluice.PayloadChecker
	// Version is the version of your program, by which `sluice holders` chooses processes. Default:
	// [presence.ProgramVersion].
	Version string
	// Logger gets one line per event; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
	// LogLimit is how many lines of an event the forwarder logs for one queue within 10 s. Beyond the limit, it
	// logs only their number. Default 10; negative: all lines.
	LogLimit int
	// Scrub removes secrets and personal data from errors, stacks and reasons before they are stored or logged.
	// A scrub.Scrubber may keep some families; scrub.Nothing keeps all. Default: scrub.Text.
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

// Forwarder moves jobs from one store to another. [Forwarder.Run] does the work. Any number may run side by
// side.
type Forwarder struct {
	local   sluice.Store
	centre  sluice.Store
	client  *sluice.Client // of the centre
	options Options
	wrong   error // the error in the options
	running safe.Running
	live    *sluice.LiveSettings // of the local store
	log     *event.Log
	ear     *obey.Ear
	holder  presence.Holder
	serving []*servedQueue
}

// New makes a forwarder. New does not access the stores.
func New(local, centre sluice.Store, options Options) *Forwarder {
	wrong := safe.Options(options, "LogLimit")
	options = options.withDefaults()
	local, centre = scrubbed.Store(local, options.Scrub), scrubbed.Store(centre, options.Scrub)
	holder := presence.NewID()
	log := event.NewLog(options.Logger, holder, options.LogLimit)
	f := &Forwarder{
		local: local, centre: centre, options: options, wrong: wrong,
		client: sluice.NewClient(centre, sluice.ClientOptions{PayloadChecker: safe.Checker(options.PayloadChecker), Logger: options.Logger}),
		live:   sluice.NewLiveSettings(local, sluice.LiveOptions{Logger: options.Logger}),
		log:    log, ear: obey.New(log),
		holder: presence.Holder{
			ID: holder, Role: presence.RoleForwarder, Queues: options.Queues, Version: cmp.Or(options.Version, presence.ProgramVersion()), Protocol: presence.Protocol,
		},
	}
	for _, queue := range options.Queues {
		f.serving = append(f.serving, &servedQueue{queue: queue, wake: make(chan struct{}, 1)})
	}
	return f
}

// engine returns the local store's engine name for jobs being sent to this centre.
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
		if err := sluice.CheckOwnQueueName(queue); err != nil {
			return err
		}
	}
	return nil
}

// Run forwards until ctx ends, and then returns nil. While the centre is unreachable, jobs stay in the local
// store, no attempt is counted, and Run retries after a pause. When ctx ends, Run finishes work in progress for
// up to [Options].Drain. It hands back the jobs that it did not send; the centre may have the others, which continue
// with the next forwarder. If somebody tells the process to stop,
// Run ends the same way, and returns a [presence.StoppedError]. Told to quiesce, Run takes no new jobs.
func (f *Forwarder) Run(ctx context.Context) error {
	if err := f.check(); err != nil {
		return err
	}
	end, err := f.running.Begin()
	if err != nil {
		return fmt.Errorf("forwarder: %w", err)
	}
	defer end()
	ctx, stopped := f.ear.Obeying(ctx)
	defer stopped(nil)
	work, quit := obey.Draining(ctx, f.options.Drain)
	defer quit()
	defer f.log.Flush()
	f.beat(work, 0) // before the first claim: the process may have been told to quiesce
	var serving, beside sync.WaitGroup
	besideCtx, stop := context.WithCancel(work)
	beside.Go(func() { f.watch(besideCtx) })
	beside.Go(func() { f.keep(besideCtx) })
	for _, l := range f.serving {
		serving.Go(func() { f.serve(ctx, work, l) })
	}
	serving.Wait()
	stop()
	beside.Wait()
	f.letGo(work)
	f.leave(work)
	return obey.Stopped(ctx)
}

// Once forwards the waiting jobs, and those that dead forwarders were sending, and returns their counts. An unreachable centre
// is an error, and so is one that refuses to cancel what was cancelled here. When ctx ends, Once claims nothing more, sends
// the jobs that it has for up to [Options].Drain, hands back the others, and returns the error of ctx.
func (f *Forwarder) Once(ctx context.Context) (Sent, error) {
	var all Sent
	if err := f.check(); err != nil {
		return all, err
	}
	defer f.log.Flush()
	work, quit := obey.Draining(ctx, f.options.Drain)
	defer quit()
	keeping, stop := context.WithCancel(work)
	var beside sync.WaitGroup
	beside.Go(func() { f.keep(keeping) })
	defer f.leave(work) // after the last heartbeat, which would list the forwarder again
	defer f.letGo(work)
	defer beside.Wait()
	defer stop()
	var refused []error
	for _, l := range f.serving {
		for {
			sent, err := f.cycle(ctx, work, l)
			all.add(sent)
			if err != nil {
				return all, err
			}
			if sent.Claimed == 0 && !l.more {
				break
			}
		}
		refused = append(refused, l.refused)
	}
	return all, errors.Join(refused...)
}

// serve forwards the jobs of one queue, cycle after cycle, until ctx ends.
func (f *Forwarder) serve(ctx, work context.Context, l *servedQueue) {
	failures := 0
	var since time.Time
	for ctx.Err() == nil {
		sent, err := f.cycle(work, work, l)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if failures++; failures == 1 {
				since = time.Now()
				f.log.Emit(event.NotForwarded, l.queue, "error", err)
			}
			l.rest(ctx, f.options.Backoff.Delay(failures), false)
		default:
			if failures > 0 {
				f.log.Emit(event.ForwardingAgain, l.queue, "duration", time.Since(since).Round(time.Second))
			}
			failures = 0
			if sent.Claimed == 0 && !l.more {
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
