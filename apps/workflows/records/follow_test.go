package records_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/workflows/records"
)

// Whoever moves the jobs, and whenever a process is killed, no record says something else than its job.
func TestRecordsNeverDisagreeWithTheirJobs(t *testing.T) {
	onEach(t, func(t *testing.T, d *records.Database) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		m := &mover{d: d, random: rand.New(rand.NewPCG(seed, 0)), ctx: t.Context()}
		for range 6 {
			var err error
			for n := 0; n < 25 && err == nil; n++ {
				err = m.move()
			}
			check(t, err)
			apptest.KillMover(t, d.Address())
			agree(t, d)
		}
		states := make(map[records.State]int)
		all, err := d.Executions(t.Context(), "acme", 10_000)
		check(t, err)
		for _, e := range all {
			states[e.State]++
		}
		if states[records.Completed] == 0 || states[records.Failed] == 0 || states[records.Waiting] == 0 {
			t.Errorf("the records are %v; the test needs some of each", states)
		}
		t.Logf("%d moves, records %v", m.moves, states)
	})
}

func agree(t *testing.T, d *records.Database) {
	t.Helper()
	astray, err := d.Astray(t.Context())
	check(t, err)
	if len(astray) > 0 {
		t.Fatalf("%d records disagree with their jobs:\n%s", len(astray), strings.Join(astray, "\n"))
	}
}

// openMover opens the records in another process, for moves until it is killed.
func openMover(address string) (move func() error, err error) {
	d, err := records.Open(context.Background(), address)
	m := &mover{d: d, random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)), ctx: context.Background()}
	return m.move, err
}

// mover makes moves of every kind, as dispatchers, upkeep, runs and persons do.
type mover struct {
	d      *records.Database
	random *rand.Rand
	ctx    context.Context
	moves  int
}

func (m *mover) move() error {
	m.moves++
	act := sluice.Act{By: "test", Reason: "test"}
	client, store := m.d.Client, m.d.Store
	switch m.random.IntN(10) {
	case 0, 1, 2:
		e := records.NewExecution{Definition: "order"}
		_, _, err := m.d.EnqueueMany(m.ctx, "acme", []records.NewExecution{e, e, e})
		return err
	case 3:
		return m.some(sluice.StateQueued, func(ids []sluice.ID) error { return client.Cancel(m.ctx, ids, act) })
	case 4:
		return m.some(sluice.StateDead, func(ids []sluice.ID) error { return client.Requeue(m.ctx, ids, act) })
	case 5:
		return m.some(sluice.StateDead, func(ids []sluice.ID) error { return client.Prune(m.ctx, ids, act) })
	case 6:
		return m.some(sluice.StateDispatched, func(ids []sluice.ID) error { return client.Terminate(m.ctx, ids, act) })
	case 7:
		_, err := store.Recover(m.ctx, records.Queue, 100, "test")
		return err
	}
	return m.work()
}

func (m *mover) some(state sluice.State, act func(ids []sluice.ID) error) error {
	return apptest.Some(m.ctx, m.d.Client, records.Queue, state, act)
}

// work claims jobs and starts their runs, each of which gets as far as it happens to.
func (m *mover) work() error {
	claimed, err := m.d.Store.Claim(m.ctx, claimOf(4))
	if err != nil {
		return err
	}
	for _, c := range claimed.Jobs {
		if err := m.run(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) run(c *sluice.Claim) error {
	by := func(event sluice.Event) sluice.Settlement {
		return sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: event, Error: "the run failed"}
	}
	ref := "execution-" + c.ID.String()
	far := m.random.IntN(6)
	if far == 0 {
		return nil // its lease runs out
	}
	if far == 1 {
		return m.settle(by(sluice.EventRetry))
	}
	if errs, err := m.d.Store.Intend(m.ctx, []sluice.Intent{{ID: c.ID, Token: c.Token, Engine: "temporal", Ref: ref, Lease: time.Minute}}); err != nil || errs[0] != nil {
		return err // somebody was faster
	}
	run := sluice.NewID().String()
	if _, err := m.d.Begin(m.ctx, "acme", c.ID.String(), run); err != nil {
		return err
	}
	dispatched := by(sluice.EventDispatch)
	dispatched.Ref, dispatched.Error = ref, ""
	if err := m.settle(dispatched); err != nil || far == 2 {
		return err
	}
	failure := ""
	end := by(sluice.EventComplete)
	if far > 3 {
		failure, end = "the node failed", by(sluice.EventBury)
	}
	if err := m.d.End(m.ctx, c.ID.String(), run, failure); err != nil || far == 3 && m.random.IntN(4) == 0 {
		return err
	}
	return m.settle(end)
}

// settle writes what became of a claim that may be lost.
func (m *mover) settle(s sluice.Settlement) error {
	_, err := m.d.Store.Settle(m.ctx, []sluice.Settlement{s})
	return err
}
