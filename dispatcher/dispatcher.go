// Package dispatcher hands due jobs to an engine, such as Temporal, at the rate that the settings of their
// queues allow. A dispatcher claims jobs, records the runs that it is about to request, and has the engine
// start them. Then it settles each job by the engine's answer.
//
// Begin with [New] and [Dispatcher.Run]; [Options].Engines names the engines. [Dispatcher.Once] does a single
// cycle, for programs with a schedule of their own. Any number of dispatchers may run side by side.
//
// A dispatcher does not follow runs to their end: package upkeep does. Next, read docs/guide/temporal.md, and
// package engine/temporal for the engine; package engine/local runs Go functions instead.
package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/began"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/obey"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/scrubbed"
	"github.com/sluice-queue/sluice/presence"
)

// Options adjust a [Dispatcher]. Engines is required; zero values of the other fields work.
type Options struct {
	// Engines are the engines to hand jobs to, by the names used in the queues' setting `engine`.
	Engines map[string]engine.Engine
	// Queues limits the dispatcher to these queues. Default: all queues that name one of the engines.
	Queues []string
	// Batch is the most jobs that one claim takes, unless the queue's own setting applies. Default 500.
	Batch int
	// Poll is how often the dispatcher looks at a queue in which nothing was due. Default 1 s.
	Poll time.Duration
	// Probe is how long the breaker spares an unusable engine before it tries again with one job. Default 5 s.
	Probe time.Duration
	// Drain is how long Run goes on to start and settle claimed jobs after its context has ended. Default 30 s.
	Drain time.Duration
	// Version is the version of your program, by which `sluice holders` chooses processes. Default:
	// [presence.ProgramVersion].
	Version string
	// Logger gets one line per event; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
	// LogLimit is how many lines of an event the dispatcher logs for one queue within 10 s. Beyond the limit,
	// it logs only their number. Default 10; negative: all lines.
	LogLimit int
	// Scrub removes secrets and personal data from errors, stacks and reasons before they are stored or logged.
	// A scrub.Scrubber may keep some families; scrub.Nothing keeps all. Default: scrub.Text.
	Scrub func(text string) string
}

// Dispatcher hands jobs to engines. [Dispatcher.Run] does the work.
type Dispatcher struct {
	store    sluice.Store
	options  Options
	wrong    error // the error in the options
	running  safe.Running
	settings *sluice.LiveSettings
	log      *event.Log
	tenants  *event.Tenants
	pauses   *pause.Watcher
	ear      *obey.Ear
	holder   presence.Holder

	mu      sync.Mutex
	begun   began.Tally // for queues with a rate
	serving map[string]*servedQueue
	inUse   map[string]bool // queues that have a goroutine
	// beaten is when the store last accepted a heartbeat.
	beaten time.Time
	all    sync.WaitGroup
}

// New makes a dispatcher. New does not access the store or the engines.
func New(store sluice.Store, options Options) *Dispatcher {
	wrong := safe.Options(options, "LogLimit")
	defaultTo(&options.Batch, 500)
	defaultTo(&options.Poll, time.Second)
	defaultTo(&options.Probe, 5*time.Second)
	defaultTo(&options.Drain, 30*time.Second)
	options.Logger = scrubbed.Logger(options.Logger, options.Scrub)
	options.Engines = scrubbed.Engines(options.Engines, options.Scrub)
	store = scrubbed.Store(store, options.Scrub)
	holder := presence.NewID()
	log := event.NewLog(options.Logger, holder, options.LogLimit)
	return &Dispatcher{
		store: store, options: options, wrong: wrong, settings: sluice.NewLiveSettings(store, sluice.LiveOptions{Logger: options.Logger}),
		log: log, tenants: event.NewTenants(log, store), pauses: pause.NewWatcher(store), ear: obey.New(log),
		holder:  presence.Holder{ID: holder, Role: presence.RoleDispatcher, Version: cmp.Or(options.Version, presence.ProgramVersion()), Protocol: presence.Protocol},
		serving: make(map[string]*servedQueue), inUse: make(map[string]bool),
	}
}

func defaultTo[T int | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// Run dispatches until ctx ends, and then returns nil. For up to [Options].Drain it still starts and settles
// the claimed jobs. For the remaining jobs, upkeep asks the engine when their leases end. Without a store, Run
// returns an error at once. If somebody tells the process to stop, Run drains too, and returns a
// [presence.StoppedError]. Told to quiesce, Run goes on without new jobs until somebody lifts that.
func (d *Dispatcher) Run(ctx context.Context) error {
	if err := cmp.Or(sluice.CheckGiven("store", d.store), d.wrong); err != nil {
		return fmt.Errorf("dispatcher: %w", err)
	}
	end, err := d.running.Begin()
	if err != nil {
		return fmt.Errorf("dispatcher: %w", err)
	}
	defer end()
	ctx, stop := d.ear.Obeying(ctx)
	defer stop(nil)
	work, quit := obey.Draining(ctx, d.options.Drain)
	defer quit()
	d.log.Emit(event.DispatcherStarted, "", "engines", slices.Sorted(maps.Keys(d.options.Engines)), "queues", event.Some(d.options.Queues))
	defer d.log.Flush()
	d.beat(work, 0) // before the first claim: the process may have been told to quiesce
	d.all.Go(func() { d.watch(ctx) })
	d.all.Go(func() { d.keep(ctx, work) })
	d.all.Go(func() { d.tenants.Run(ctx) })
	ticker := time.NewTicker(sluice.SettingsInterval)
	defer ticker.Stop()
	for {
		d.openQueues(ctx, work)
		select {
		case <-ctx.Done():
			d.all.Wait()
			d.leave(work)
			return obey.Stopped(ctx)
		case <-ticker.C:
		}
	}
}

// openQueues starts to serve queues that are not served yet.
func (d *Dispatcher) openQueues(ctx, work context.Context) {
	chosen := sluice.QueueFilter{Names: d.options.Queues}
	if len(chosen.Names) == 0 {
		chosen.Engines = slices.Sorted(maps.Keys(d.options.Engines))
	}
	queues, err := d.store.Queues(ctx, chosen)
	if err != nil {
		d.failed(ctx, "read settings", "", err)
		return
	}
	for _, q := range queues {
		if !d.serves(q) {
			d.refuseUnknown(q)
			continue
		}
		l := d.servedQueue(q.Name)
		d.mu.Lock()
		served := d.inUse[q.Name]
		d.inUse[q.Name] = true
		d.mu.Unlock()
		if !served {
			d.all.Go(func() { d.serve(ctx, work, l) })
		}
	}
}

// refuseUnknown reports a queue whose engine this process was not given. If the dispatcher still serves the
// queue, the report waits until the queue's held jobs are settled.
func (d *Dispatcher) refuseUnknown(q sluice.Queue) {
	d.mu.Lock()
	served := d.inUse[q.Name]
	d.mu.Unlock()
	if len(d.options.Queues) == 0 || served {
		return
	}
	unknown := &engine.UnknownError{Queue: q.Name, Engine: q.Settings.Engine}
	if d.servedQueue(q.Name).refuse(unknown) {
		d.log.Emit(event.DispatchRefused, q.Name, "error", unknown)
	}
}

// serves reports whether this dispatcher hands over the jobs of a queue.
func (d *Dispatcher) serves(q sluice.Queue) bool {
	_, known := d.options.Engines[q.Settings.Engine]
	return known && (len(d.options.Queues) == 0 || slices.Contains(d.options.Queues, q.Name))
}

func (d *Dispatcher) servedQueue(queue string) *servedQueue {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.serving[queue]
	if l == nil {
		l = &servedQueue{queue: queue, wake: make(chan struct{}, 1), held: make(map[sluice.ID]*hold), guards: make(map[string]*guarded)}
		d.serving[queue] = l
	}
	return l
}

// serve dispatches the jobs of one queue, cycle after cycle, until ctx ends or the queue has another engine.
func (d *Dispatcher) serve(ctx, work context.Context, l *servedQueue) {
	defer func() {
		d.mu.Lock()
		delete(d.inUse, l.queue)
		d.mu.Unlock()
	}()
	for ctx.Err() == nil {
		q, err := d.settings.Queue(ctx, l.queue)
		if err == nil && !d.serves(q) && l.idle() {
			l.refuse(nil)
			l.heal()
			return
		}
		wait := d.options.Poll
		if err == nil {
			_, wait, err = d.cycle(ctx, work, l, q, true)
		}
		if err != nil {
			d.failed(ctx, "cycle", l.queue, err)
		}
		l.rest(ctx, wait, q.Settings.Interval)
	}
	d.finish(ctx, work, l)
}

// finish hands over the jobs that were claimed ahead when the context ended, and settles all jobs that are decided. If
// the store takes no settlements, finish tries again until the drain is over.
func (d *Dispatcher) finish(ctx, work context.Context, l *servedQueue) {
	if len(l.holding(unanswered)) > 0 {
		q, err := d.settings.Queue(work, l.queue)
		if err == nil {
			_, _, err = d.cycle(ctx, work, l, q, false)
		}
		if err != nil {
			d.failed(work, "drain", l.queue, err)
		}
		d.handBack(l, "claimed ahead, and the dispatcher ends")
	}
	for work.Err() == nil {
		err := d.settle(work, l, &Cycle{})
		if err == nil {
			return
		}
		d.failed(work, "drain", l.queue, err)
		l.rest(work, d.options.Poll, 0)
	}
}

// Once does one cycle of a queue: it claims due jobs, up to a batch, and hands them to their engine. Use Once
// with a schedule of your own; [Dispatcher.Run] repeats cycles by itself. Told to quiesce, Once claims nothing. If runs could not be followed safely,
// the error says why: see [engine.CheckFollowing].
func (d *Dispatcher) Once(ctx context.Context, queue string) (Cycle, error) {
	q, err := d.settings.Queue(ctx, queue)
	if err != nil {
		return Cycle{}, err
	}
	if _, known := d.options.Engines[q.Settings.Engine]; !known {
		return Cycle{}, &engine.UnknownError{Queue: queue, Engine: q.Settings.Engine}
	}
	work := context.WithoutCancel(ctx)
	d.mu.Lock()
	d.inUse[queue] = true
	d.mu.Unlock()
	l := d.servedQueue(queue)
	d.renew(work) // nobody else does: since the last cycle, upkeep may have decided about held jobs
	done, _, err := d.cycle(ctx, work, l, q, false)
	d.log.Flush()
	d.beat(work, done.Held)
	if refused := l.refusal(); err == nil && refused != nil {
		err = fmt.Errorf("dispatch queue %q: %w", queue, refused)
	}
	return done, err
}

// watch starts a cycle at once when jobs come in.
func (d *Dispatcher) watch(ctx context.Context) {
	err := d.store.Watch(ctx, func(signal sluice.Signal) {
		if !signal.Cancelled.IsZero() || !signal.Ended.IsZero() {
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, l := range d.serving {
			if signal.Queue == "" || signal.Queue == l.queue {
				l.nudge()
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		d.log.Emit(event.SignalsLost, "", "error", err)
	}
}

// held returns the number of held jobs in all queues.
func (d *Dispatcher) held() (jobs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.serving {
		jobs += l.holds()
	}
	return jobs
}

func (d *Dispatcher) failed(ctx context.Context, what, queue string, err error) {
	if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		d.log.Emit(event.DispatchFailed, queue, "what", what, "error", err)
	}
}

func (d *Dispatcher) leave(ctx context.Context) {
	for range 10 {
		d.reportBegun(ctx, 0)
	}
	d.log.Emit(event.DispatcherStopped, "", "jobs", d.held())
	if err := presence.Given(d.store).Deregister(ctx, d.holder.ID); err != nil {
		d.log.Emit(event.NotForgotten, "", "error", err)
	}
}
