// Package sample is the work of a made-up shop, with which each page of the console has something to show: waves,
// tenants that take turns, failures, a paused queue, a batch, a flow, and people who change settings.
//
// Begin with [New]. [Shop.Prepare] fills a store once, and [Shop.Run] works on its jobs and makes new ones.
package sample

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/worker"
)

// Queues of the shop.
const (
	payments = "payments" // limited, fair, with a noisy tenant
	refunds  = "refunds"  // share the limit of the bank with payments
	mails    = "mails"    // many, quick, some fail
	reports  = "reports"  // long, with progress, by a schedule
	exports  = "exports"  // paused
	renewals = "renewals" // waves
	imports  = "imports"  // in batches
	crawls   = "crawls"   // bounded per host
	orders   = "orders"   // workflows of the local engine
	ledgers  = "ledgers"  // nodes of flows
	pages    = "ledger-pages"
)

// Engine is the name of the engine that runs the orders.
const Engine = "local"

// Options adjust a [Shop].
type Options struct {
	// Logger gets the log of the worker. Default: slog.Default().
	Logger *slog.Logger
	// Engine runs the orders. Required.
	Engine *local.Engine
	// Alone refuses a store that has any other queues.
	Alone bool
}

// Shop is the made-up shop.
type Shop struct {
	store  sluice.Store
	client *sluice.Client
	worker *worker.Worker
	engine *local.Engine
	alone  bool
	// round counts the seconds of traffic.
	round int
}

// New makes the shop of a store, with the functions of its runs in the engine.
func New(store sluice.Store, options Options) *Shop {
	w := worker.New(store, worker.Options{Slots: 24, Drain: time.Second, Logger: options.Logger})
	s := &Shop{store: store, client: sluice.NewClient(store, sluice.ClientOptions{Logger: options.Logger}), worker: w, engine: options.Engine, alone: options.Alone}
	s.handle()
	return s
}

// Run works on the jobs of the shop and makes new ones, until ctx ends.
func (s *Shop) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	for _, part := range []func(context.Context) error{s.worker.Run, s.engine.Run, s.traffic} {
		parts.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				stop(err)
			}
		})
	}
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// these are the people of the shop.
const (
	ada  = "ada"
	bob  = "bob"
	shop = "shop"
)

func by(who, why string) sluice.Act { return sluice.Act{By: who, Reason: why, ID: sluice.NewID()} }

// share is a number of 0 to 99 that follows from a job: the same at each attempt.
func share(id sluice.ID) int {
	sum := fnv.New32a()
	_, _ = sum.Write(id[:]) // never fails
	return int(sum.Sum32() % 100)
}

func payload(value any) json.RawMessage {
	text, _ := json.Marshal(value) // texts and numbers
	return text
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
