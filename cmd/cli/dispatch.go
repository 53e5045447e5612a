package cli

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/upkeep"
)

// dispatchHow says how cycles begin, and whether upkeep runs too.
type dispatchHow struct {
	once       bool
	asSchedule bool
	taskQueue  string // of the cycles that Temporal begins
	noUpkeep   bool
}

func (a *app) dispatchCommand() *cobra.Command {
	var engine engineFlags
	var options dispatcher.Options
	var how dispatchHow
	command := &cobra.Command{
		Use:   "dispatch [QUEUE…]",
		Short: "Start runs of due jobs at an engine, and follow them",
		Long: `Claims due jobs of queues whose setting engine names a given engine, has Temporal start a workflow
for each, and follows it to its end. Without arguments it serves all such queues. Any number may
run; the queues' limits (rate, concurrency, batch, interval, lead, jitter) hold for all together.

These settings say where jobs run: engine, run_type, run_task_queue, run_namespace, run_timeout,
run_ref. The first interrupt drains: claimed jobs still start within --grace.`,
		Example: "  sluice dispatch --engine eu=temporal://eu.example.com:7233/billing --engine us=temporal://us.example.com:7233/billing\n  sluice settings set payment engine=temporal run_type=PaymentExec run_task_queue=payment-exec\n  sluice dispatch --temporal 127.0.0.1:7233\n  sluice dispatch payment --once",
		Args:    arguments(0, math.MaxInt),
		RunE: func(command *cobra.Command, queues []string) error {
			for _, queue := range queues {
				if err := sluice.CheckQueueName(queue); err != nil {
					return err
				}
			}
			if (how.once || how.asSchedule) && len(queues) == 0 {
				return usagef("--once and --as-temporal-schedule need the queues; write: sluice dispatch QUEUE --once")
			}
			if how.taskQueue != "" && !how.asSchedule {
				return usagef("--cycle-task-queue is for --as-temporal-schedule, which is not given")
			}
			if how.taskQueue == "" && how.asSchedule {
				return usagef("--as-temporal-schedule needs a task queue for its cycles, which no other store in the namespace has; add --cycle-task-queue NAME")
			}
			options.Queues = queues
			return a.dispatch(command.Context(), engine, options, how)
		},
	}
	flags := command.Flags()
	a.metrics.addTo(flags)
	a.addVersionTo(flags)
	engine.addTo(flags)
	flags.IntVar(&options.Batch, "batch", 500, "jobs per claim, unless the queue sets batch")
	flags.Var(newDuration(&options.Poll, time.Second), "poll", "how often to look for jobs without notification")
	flags.Var(newDuration(&options.Probe, 5*time.Second), "probe", "how long to avoid an unusable engine")
	flags.Var(newDuration(&options.Drain, 30*time.Second), "grace", "time for claimed jobs after the first interrupt")
	flags.BoolVar(&how.once, "once", false, "one cycle of each queue, then end")
	flags.BoolVar(&how.asSchedule, "as-temporal-schedule", false, "let a Temporal Schedule begin cycles, at the queue's interval")
	flags.StringVar(&how.taskQueue, "cycle-task-queue", "", "task queue of these cycles, which no other store in the namespace has")
	command.MarkFlagsMutuallyExclusive("once", "as-temporal-schedule")
	flags.BoolVar(&how.noUpkeep, "no-upkeep", false, "leave following, recovering and pruning to others")
	return command
}

func (a *app) dispatch(ctx context.Context, flags engineFlags, options dispatcher.Options, how dispatchHow) error {
	logger := a.logger()
	opened, done, err := flags.open(false, logger)
	if err != nil {
		return err
	}
	defer done()
	if how.asSchedule && len(opened) > 1 {
		return usagef("--as-temporal-schedule needs one engine, and %d are given", len(opened))
	}
	engines := a.observeEngines(opened)
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	options.Version = a.version
	options.Engines, options.Logger, options.LogLimit, options.Scrub = engines, logger, a.log.limit, a.log.clean()
	d := dispatcher.New(store, options)
	if how.once {
		defer a.leave(ctx, store, d)
		return a.dispatchOnce(ctx, d, options.Queues)
	}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	if !how.noUpkeep {
		tend := upkeep.Options{Version: a.version, Engines: engines, PayloadChecker: schema.New(), Logger: logger, LogLimit: options.LogLimit, Scrub: options.Scrub}
		beside.Go(func() { _ = upkeep.New(store, tend).Run(ctx) }) // nil, or somebody stopped it
	}
	if how.asSchedule {
		for _, engine := range opened {
			if scheduler, is := engine.(*temporal.Engine); is {
				defer a.leave(ctx, store, d)
				return runSchedules(ctx, store, scheduler, d, options, how.taskQueue)
			}
		}
	}
	return d.Run(ctx)
}

// leave takes the process from the list of processes, as Run of the dispatcher does. It would be there as silent for an hour.
func (a *app) leave(ctx context.Context, store sluice.Store, d *dispatcher.Dispatcher) {
	log := a.events()
	defer log.Flush()
	if err := presence.Given(store).Deregister(context.WithoutCancel(ctx), d.Status().Holder); err != nil {
		log.Emit(event.NotForgotten, "", "error", err)
	}
}

// runSchedules runs the cycles that Temporal begins.
func runSchedules(ctx context.Context, store sluice.Store, engine *temporal.Engine, d *dispatcher.Dispatcher, options dispatcher.Options, taskQueue string) error {
	log := event.NewLog(options.Logger, "", options.LogLimit)
	defer log.Flush()
	settings := sluice.NewLiveSettings(store, sluice.LiveOptions{Logger: options.Logger})
	return engine.RunSchedules(ctx, temporal.Schedules{
		Queues: options.Queues, TaskQueue: taskQueue,
		Interval: func(ctx context.Context, queue string) (time.Duration, error) {
			q, err := settings.Queue(ctx, queue)
			return q.Settings.Interval, err
		},
		Cycle:  func(ctx context.Context, queue string) (any, error) { return d.Once(ctx, queue) },
		Failed: func(err error) { log.Emit(event.SchedulesFailed, "", "error", err) },
	})
}

// cycleRow is the result of one cycle of a queue.
type cycleRow struct {
	Queue string `json:"queue"`
	dispatcher.Cycle
}

func (a *app) dispatchOnce(ctx context.Context, d *dispatcher.Dispatcher, queues []string) error {
	var rows []cycleRow
	for _, queue := range queues {
		cycle, err := d.Once(ctx, queue)
		if err != nil {
			return fmt.Errorf("dispatch queue %q: %w", queue, err)
		}
		rows = append(rows, cycleRow{queue, cycle})
	}
	count := func(name string, of func(cycleRow) int) column[cycleRow] {
		return column[cycleRow]{name, func(r cycleRow) string { return fmt.Sprint(of(r)) }, true}
	}
	return printList(a, rows, func(r cycleRow) string { return r.Queue }, []column[cycleRow]{
		{"QUEUE", func(r cycleRow) string { return r.Queue }, false},
		count("CLAIMED", func(r cycleRow) int { return r.Claimed }), count("DISPATCHED", func(r cycleRow) int { return r.Dispatched }),
		count("BURIED", func(r cycleRow) int { return r.Buried }), count("RELEASED", func(r cycleRow) int { return r.Released }),
		count("HELD", func(r cycleRow) int { return r.Held }),
	})
}
