package payment_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/payment"
)

// Whoever moves the jobs, and whenever a process is killed, no payment says something else than its job.
func TestPaymentsNeverDisagreeWithTheirJobs(t *testing.T) {
	onBoth(t, func(d *desk) {
		m := &mover{books: d.books, ctx: d.Context()}
		for round := range 4 {
			var all []any
			for i := range 40 {
				r := request(fmt.Sprintf("p%d-%d", round, i))
				r.DueAt = time.Now().Add(-time.Minute)
				all = append(all, r)
			}
			d.init(all...)
			d.execute(m, 8)
			apptest.KillMover(d, d.address)
			astray, err := payment.Astray(d.Context(), d.books.DB(), d.books.Jobs())
			if err != nil || len(astray) > 0 {
				d.Fatalf("%d payments disagree with their jobs: %v\n%s", len(astray), err, strings.Join(astray, "\n"))
			}
		}
		for _, status := range []payment.Status{payment.Scheduled, payment.Processing, payment.Failed} {
			if d.count("select count(*) from payment where status = '"+string(status)+"'") == 0 {
				d.Errorf("no payment is %s; the test needs some", status)
			}
		}
	})
}

// A run that is on its way when its job is cancelled moves no money, and the requeued payment is executed once.
func TestACancelledPaymentIsNotExecuted(t *testing.T) {
	onBoth(t, func(d *desk) {
		d.init(request("p1"))
		job, act := d.job("p1"), sluice.Act{By: "ada", Reason: "not any more"}
		if err := d.books.Client.Cancel(d.Context(), []sluice.ID{job.ID}, act); err != nil {
			d.Fatal(err)
		}
		if err := d.run(d.domain.Exec, job.Payload).GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "failed before it was executed: cancelled") {
			d.Errorf("the run of a cancelled payment: %v", err)
		}
		if n := d.count("select count(*) from payment_entry"); n != 0 || d.status("p1") != string(payment.Failed) {
			d.Errorf("%d entries, status %s", n, d.status("p1"))
		}
		if err := d.books.Client.Requeue(d.Context(), []sluice.ID{job.ID}, act); err != nil {
			d.Fatal(err)
		}
		if d.status("p1") != string(payment.Scheduled) {
			d.Errorf("after a requeue: status %s", d.status("p1"))
		}
		if err := d.run(d.domain.Exec, job.Payload).GetWorkflowError(); err != nil || d.status("p1") != string(payment.Processing) {
			d.Errorf("%v, status %s", err, d.status("p1"))
		}
	})
}

// execute runs phase B of some payments to its end, and completes their jobs.
func (d *desk) execute(m *mover, n int) {
	d.Helper()
	claimed, err := m.claim(n)
	if err != nil {
		d.Fatal(err)
	}
	for _, c := range claimed {
		if err := d.run(d.domain.Exec, c.Payload).GetWorkflowError(); err != nil {
			d.Fatal(err)
		}
		if err := m.settle(c, sluice.EventComplete); err != nil {
			d.Fatal(err)
		}
	}
}

// openMover opens the books in another process, for moves until it is killed.
func openMover(address string) (move func() error, err error) {
	b, err := books.Open(context.Background(), address)
	m := &mover{books: b, ctx: context.Background()}
	return m.move, err
}

// mover makes moves of every kind but the good end, as dispatchers, upkeep and persons do.
type mover struct {
	books *books.Books
	ctx   context.Context
}

func (m *mover) move() error {
	act, client := sluice.Act{By: "test", Reason: "test"}, m.books.Client
	switch rand.IntN(8) {
	case 0:
		return m.some(sluice.StateQueued, func(ids []sluice.ID) error { return client.Cancel(m.ctx, ids, act) })
	case 1:
		return m.some(sluice.StateDead, func(ids []sluice.ID) error { return client.Requeue(m.ctx, ids, act) })
	case 2:
		return m.some(sluice.StateCancelled, func(ids []sluice.ID) error { return client.Requeue(m.ctx, ids, act) })
	case 3:
		return m.some(sluice.StateDead, func(ids []sluice.ID) error { return client.Prune(m.ctx, ids, act) })
	case 4:
		return m.some(sluice.StateClaimed, func(ids []sluice.ID) error { return client.Terminate(m.ctx, ids, act) })
	case 5:
		_, err := m.books.Store.Recover(m.ctx, payment.Queue, 100, "test")
		return err
	}
	claimed, err := m.claim(1 + rand.IntN(3))
	for _, c := range claimed {
		events := []sluice.Event{sluice.EventRetry, sluice.EventRelease, sluice.EventBury, ""} // none: its lease runs out
		if event := events[rand.IntN(len(events))]; event != "" && err == nil {
			err = m.settle(c, event)
		}
	}
	return err
}

func (m *mover) some(state sluice.State, act func(ids []sluice.ID) error) error {
	return apptest.Some(m.ctx, m.books.Client, payment.Queue, state, act)
}

func (m *mover) claim(limit int) ([]*sluice.Claim, error) {
	claimed, err := m.books.Store.Claim(m.ctx, sluice.ClaimRequest{
		Queue: payment.Queue, Limit: limit, Holder: "test", Lease: 300 * time.Millisecond, Token: sluice.NewToken(), Engine: "temporal",
	})
	return claimed.Jobs, err
}

// settle writes what became of a claim that may be lost.
func (m *mover) settle(c *sluice.Claim, event sluice.Event) error {
	s := sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: event}
	if event == sluice.EventRetry || event == sluice.EventBury {
		s.Error = "no route to bank"
	}
	_, err := m.books.Store.Settle(m.ctx, []sluice.Settlement{s})
	return err
}
