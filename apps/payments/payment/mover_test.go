package payment_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/invoice"
	"github.com/sluice-queue/sluice/apps/payments/payment"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// mover makes moves of every kind, as dispatchers, upkeep and people do. The local engine keeps its runs in the same
// database, so they outlive a killed process.
type mover struct {
	books      *books.Books
	ctx        context.Context
	domains    []domain.Domain
	engine     *local.Engine
	dispatcher *dispatcher.Dispatcher
	upkeep     *upkeep.Upkeep
}

func newMover(ctx context.Context, b *books.Books) *mover {
	quiet := slog.New(slog.DiscardHandler)
	settings := local.DefaultSettings()
	settings.Lease = time.Second // soon, another process takes over the runs of a killed one
	m := &mover{books: b, ctx: ctx, domains: []domain.Domain{payment.New(b), invoice.New(b)}}
	m.engine = local.New(b.Store, local.Options{Settings: settings, Worker: worker.Options{Logger: quiet}})
	for _, d := range m.domains {
		local.Handle(m.engine, d.Exec.Workflow, func(ctx context.Context, run *local.Run[json.RawMessage]) (any, error) {
			return nil, execute(ctx, d, run.Input)
		}, worker.QueueOptions{})
	}
	engines := map[string]engine.Engine{"temporal": m.engine}
	m.dispatcher = dispatcher.New(b.Store, dispatcher.Options{Engines: engines, Logger: quiet})
	m.upkeep = upkeep.New(b.Store, upkeep.Options{Engines: engines, Logger: quiet})
	return m
}

// execute is a run. At random it completes phase B, fails before or after it, or goes on until it is ended.
func execute(ctx context.Context, d domain.Domain, payload json.RawMessage) error {
	way := rand.IntN(6)
	switch way {
	case 0:
		return errors.New("no route to bank")
	case 1:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
			return errors.New("the bank has not answered")
		}
	}
	env := environment(d.Exec)
	env.ExecuteWorkflow(d.Exec.Workflow, payload)
	if err := env.GetWorkflowError(); err != nil || way > 2 {
		return err
	}
	return errors.New("no word from the bank")
}

// run executes runs until cleanup is called, which waits for the last run.
func (m *mover) run(t testing.TB) (cleanup func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(m.ctx))
	ended := make(chan error, 1)
	go func() { ended <- m.engine.Run(ctx) }()
	return func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// openMover opens the books in another process, which moves jobs until it is killed.
func openMover(address string) (move func() error, err error) {
	b, err := books.Open(context.Background(), address)
	if err != nil {
		return nil, err
	}
	m := newMover(context.Background(), b)
	go func() { _ = m.engine.Run(m.ctx) }() // ends with the process
	return m.move, nil
}

func (m *mover) move() error {
	queue := m.domains[rand.IntN(len(m.domains))].Queue
	act, client := sluice.Act{By: "test", Reason: "test"}, m.books.Client
	on := func(state sluice.State, do func(ctx context.Context, ids []sluice.ID, act sluice.Act) error) error {
		return apptest.Some(m.ctx, client, queue, state, func(ids []sluice.ID) error { return do(m.ctx, ids, act) })
	}
	switch rand.IntN(17) {
	case 0:
		return on(sluice.StateQueued, client.Cancel)
	case 1:
		return on(sluice.StateClaimed, client.Cancel)
	case 2, 3:
		return on(sluice.StateDispatched, client.Cancel)
	case 4:
		return on(sluice.StateCancelled, client.Terminate)
	case 5:
		return on(sluice.StateDead, client.Requeue)
	case 6:
		return on(sluice.StateCancelled, client.Requeue)
	case 7:
		act.BesideOpenRun = true
		return on(sluice.StateCancelled, client.Requeue)
	case 8:
		return on(sluice.StateDead, func(ctx context.Context, ids []sluice.ID, act sluice.Act) error {
			if err := client.Requeue(ctx, ids, act); err != nil {
				return err
			}
			return client.UndoRequeue(ctx, ids, act)
		})
	case 9:
		return on(sluice.StateDead, client.Delete)
	case 10, 11:
		_, err := m.upkeep.Once(m.ctx, true)
		return err
	case 12:
		return m.giveUp(queue)
	case 13:
		return on(sluice.StateUncertain, func(ctx context.Context, ids []sluice.ID, act sluice.Act) error {
			return client.Resolve(ctx, ids, []sluice.State{sluice.StateCompleted, sluice.StateDead}[rand.IntN(2)], act)
		})
	}
	_, err := m.dispatcher.Once(m.ctx, queue)
	return err
}

// giveUp claims jobs as a dispatcher that starts no run. It settles its claims, or lets their leases expire.
func (m *mover) giveUp(queue string) error {
	claimed, err := m.books.Store.Claim(m.ctx, sluice.ClaimRequest{
		Queue: queue, Limit: 1 + rand.IntN(3), Holder: "test", Lease: 300 * time.Millisecond, Token: sluice.NewToken(), Engine: "temporal",
	})
	for _, c := range claimed.Jobs {
		s := sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Error: "no route to bank"}
		switch rand.IntN(8) {
		case 0:
			s.Event = sluice.EventRetry
		case 1:
			s.Event, s.Error = sluice.EventRelease, ""
		case 2:
			s.Event = sluice.EventBury
		case 3, 4:
			s.Event = sluice.EventDoubt
		default:
			continue // the lease expires
		}
		_, settleErr := m.books.Store.Settle(m.ctx, []sluice.Settlement{s}) // the claim may be lost, so errors of single settlements do not matter
		err = errors.Join(err, settleErr)
	}
	return err
}
