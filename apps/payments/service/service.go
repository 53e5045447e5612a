// Package service is the application at work: the workers of each domain on Temporal, Sluice's dispatcher and upkeep, and
// the REST endpoints. It knows of domains only what package domain says of them.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/invoice"
	"github.com/sluice-queue/sluice/apps/payments/payment"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/cmd/monitor/otlp"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/upkeep"
)

// engineName is what the settings of the queues call the engine.
const engineName = "temporal"

// Options say where the service works.
type Options struct {
	// DB is a PostgreSQL URL or the path of a SQLite file.
	DB string
	// Temporal is the server's host and port, Namespace where the workflows run.
	Temporal  string
	Namespace string
	// BySchedule lets a Temporal Schedule begin each cycle of the dispatcher, as the source design does. Default: Sluice's
	// dispatcher runs beside the workers, and costs Temporal nothing.
	BySchedule bool
	Logger     *slog.Logger
}

// Service is the open application. Run lets it work.
type Service struct {
	Books    *books.Books
	Temporal client.Client
	// Domains are the kinds of work, which is where a new one is added.
	Domains []domain.Domain

	options    Options
	engine     *temporal.Engine
	dispatcher *dispatcher.Dispatcher
	upkeep     *upkeep.Upkeep
	monitor    *monitor.Monitor
}

// Open opens the database, makes what is missing in it, and connects to Temporal, which must be there.
func Open(ctx context.Context, options Options) (*Service, error) {
	b, err := books.Open(ctx, options.DB)
	if err != nil {
		return nil, err
	}
	traces, err := otlp.New(ctx)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	watched, err := b.Monitor(monitor.Options{Logger: options.Logger, Traces: traces})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	c, err := client.DialContext(ctx, client.Options{
		HostPort: options.Temporal, Namespace: options.Namespace, Logger: sdklog.NewStructuredLogger(options.Logger),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to Temporal at %s: %w", options.Temporal, err), b.Close())
	}
	s := &Service{Books: b, Temporal: c, Domains: []domain.Domain{payment.New(b), invoice.New(b)}, options: options, monitor: watched}
	s.engine = temporal.New(c, temporal.Options{Namespace: options.Namespace})
	s.dispatcher = dispatcher.New(b.Store, dispatcher.Options{Engines: s.engines(), Logger: options.Logger})
	s.upkeep = upkeep.New(b.Store, upkeep.Options{Engines: s.engines(), Logger: options.Logger})
	watched.Watch(api.Beats("upkeep", s.upkeep.Status), api.Beats("dispatch", s.dispatcher.Status), api.NoConditions("breaker", s.dispatcher.Status))
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Service) engines() map[string]engine.Engine {
	return map[string]engine.Engine{engineName: s.monitor.Engine(s.engine, engineName)}
}

// prepare makes the tables and the queues of the domains. A queue that is there keeps the settings that it has.
func (s *Service) prepare(ctx context.Context) error {
	for _, d := range s.Domains {
		if err := s.Books.Prepare(ctx, d.Tables, d.Follower()); err != nil {
			return fmt.Errorf("make the tables of %q: %w", d.Queue, err)
		}
		act := sluice.Act{By: "payments", Reason: "preset"}
		if _, err := s.Books.Client.EnsureQueue(ctx, d.Queue, d.Preset, act); err != nil {
			return fmt.Errorf("make queue %q: %w", d.Queue, err)
		}
	}
	return nil
}

// Close closes the connections. Run must have returned.
func (s *Service) Close() error {
	s.Temporal.Close()
	return s.Books.Close()
}

// Run runs the workers, dispatches, and follows what was dispatched, until ctx ends. What is under way then may finish.
func (s *Service) Run(ctx context.Context) error {
	workers := s.workers()
	for i, w := range workers {
		if err := w.Start(); err != nil {
			stop(workers[:i])
			return fmt.Errorf("start worker: %w", err)
		}
	}
	defer stop(workers)
	var all sync.WaitGroup
	var dispatchErr, upkeepErr, monitorErr error
	ctx, end := context.WithCancel(ctx)
	defer end()
	all.Go(func() {
		defer end() // without it the rest would wait for what never comes
		dispatchErr = s.dispatch(ctx)
	})
	all.Go(func() {
		upkeepErr = s.upkeep.Run(ctx)
	})
	all.Go(func() { monitorErr = s.monitor.Run(ctx) })
	all.Wait()
	return errors.Join(dispatchErr, upkeepErr, monitorErr)
}

func (s *Service) workers() []worker.Worker {
	var workers []worker.Worker
	for _, d := range s.Domains {
		workers = append(workers, d.Init.Worker(s.Temporal), d.Exec.Worker(s.Temporal))
	}
	return workers
}

func stop(workers []worker.Worker) {
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(w.Stop)
	}
	all.Wait()
}
