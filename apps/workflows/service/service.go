// Package service is what runs beside the REST interface: the dispatcher, upkeep, and the interpreter's worker.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/apps/workflows/interpreter"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/tenancy"
	"github.com/sluice-queue/sluice/upkeep"
)

// TaskQueue is where the interpreter's workers are.
const TaskQueue = "workflows"

// engineName is what the queue's settings call the engine.
const engineName = "temporal"

// settings are those that the queue begins with; from then on the database's count, and `sluice settings set` changes
// them while everything runs.
func settings(taskQueue string) sluice.Settings {
	s := sluice.DefaultSettings()
	s.Engine, s.RunType, s.RunTaskQueue = engineName, interpreter.Type, taskQueue
	s.RunRef = "execution-{id}" // as the source names it
	s.Fair = true               // workspaces take turns
	s.Batch = 20                // a cycle is short, so that slots do not stay empty until the next
	s.Audit = sluice.AuditFull
	s.RunTimeout = 30 * 24 * time.Hour
	s.FollowInterval = 500 * time.Millisecond // a workspace's slot is free so soon after a run has ended
	return s
}

// Prepare stores the queue and the tiers, unless they are there, and what each tier may have in flight.
func Prepare(ctx context.Context, d *records.Database, taskQueue string) error {
	act := sluice.Act{By: "workflows", Reason: "set up"}
	if _, err := d.Client.EnsureQueue(ctx, records.Queue, settings(taskQueue), act); err != nil {
		return err
	}
	stored, err := tenancy.Tiers(ctx, d.Store)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, tier := range stored {
		known[tier.Name] = true
	}
	for _, preset := range tenancy.PresetTiers() {
		if known[preset.Tier] {
			continue // what an operator changed stays
		}
		if _, err := tenancy.AddTier(ctx, d.Store, preset.Tier, act); err != nil && !errors.Is(err, sluice.ErrConflict) {
			return err
		}
		of := tenancy.Limits{Queue: records.Queue, Tier: preset.Tier}
		grant := func(l *tenancy.Limits) error { l.Concurrency = preset.Concurrency; return nil }
		if _, err := tenancy.ChangeLimits(ctx, d.Store, of, act, grant); err != nil {
			return err
		}
	}
	return d.SyncTiers(ctx, act.By)
}

// Service has its parts in one process. Each could run in a process of its own, and as often as you like.
type Service struct {
	Database *records.Database
	Temporal client.Client
	// TaskQueue is where the worker is. Default: TaskQueue.
	TaskQueue string
	// Hosts are the only host:port pairs that HTTP nodes may call.
	Hosts  []string
	Logger *slog.Logger
	// Monitor watches the database's store. Default: nobody does.
	Monitor *monitor.Monitor
}

// Dial connects to Temporal. The server need not be there yet.
func Dial(address string, logger *slog.Logger) (client.Client, error) {
	c, err := client.NewLazyClient(client.Options{HostPort: address, Logger: log.NewStructuredLogger(logger)})
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w", address, err)
	}
	return c, nil
}

// Run works until ctx ends, or one of its parts fails.
func (s Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var runner engine.Engine = temporal.New(s.Temporal, temporal.Options{})
	if s.Monitor != nil {
		runner = s.Monitor.Engine(runner, engineName)
	}
	engines := map[string]engine.Engine{engineName: runner}
	d := dispatcher.New(s.Database.Store, dispatcher.Options{Engines: engines, Logger: s.Logger})
	u := upkeep.New(s.Database.Store, upkeep.Options{Engines: engines, Logger: s.Logger, Interval: 250 * time.Millisecond})
	parts := []func(context.Context) error{d.Run, u.Run, s.work}
	if s.Monitor != nil {
		s.Monitor.Watch(api.Beats("upkeep", u.Status), api.Beats("dispatch", d.Status), api.NoConditions("breaker", d.Status))
		parts = append(parts, s.Monitor.Run)
	}
	var all sync.WaitGroup
	errs := make([]error, len(parts))
	for i, run := range parts {
		all.Go(func() {
			defer stop() // one that ends ends the others
			errs[i] = run(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// work executes the interpreter's workflows, as soon as Temporal can be reached.
func (s Service) work(ctx context.Context) error {
	taskQueue := cmp.Or(s.TaskQueue, TaskQueue)
	for {
		w := worker.New(s.Temporal, taskQueue, worker.Options{WorkerStopTimeout: 10 * time.Second})
		interpreter.Register(w, &interpreter.Activities{Records: s.Database, Hosts: s.Hosts})
		err := w.Start()
		if err == nil {
			<-ctx.Done()
			w.Stop()
			return nil
		}
		s.Logger.Warn("worker not started; another is tried", "task_queue", taskQueue, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * time.Second):
		}
	}
}
