package faulttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
)

// runDyingFlower is a process that runs the jobs of flows, and then what upkeep does for flows. It is killed at a
// random moment: within a transaction, or after a commit.
func runDyingFlower(ctx context.Context, store sluice.Store, queue string) error {
	time.AfterFunc(100*time.Millisecond+time.Duration(rand.IntN(400_000))*time.Microsecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	holder := fmt.Sprintf("h:%d:x", os.Getpid())
	for ctx.Err() == nil {
		if err := runJobsOfFlows(ctx, store, queue, holder); err != nil {
			return err
		}
	}
	return nil
}

// runJobsOfFlows claims a few jobs and completes them at once. Then it does what upkeep does for flows.
func runJobsOfFlows(ctx context.Context, store sluice.Store, queue, holder string) error {
	claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: queue, Limit: 3, Holder: holder, Lease: time.Second, Token: sluice.NewToken()})
	if err != nil {
		return err
	}
	var ends []sluice.Settlement
	for _, c := range claimed.Jobs {
		ends = append(ends, sluice.Settlement{ID: c.ID, Token: c.Token, Holder: holder, Event: sluice.EventComplete, Result: json.RawMessage("[1,2,3]"), Claim: c})
	}
	if len(ends) > 0 {
		if _, err := store.Settle(ctx, ends); err != nil {
			return err
		}
	}
	_, err = flow.Work(ctx, store, holder, nil)
	return err
}

const (
	flowsStarted  = 25
	flowersKilled = 30
)

func TestFlowsWhoseProcessesAreKilledRunEachNodeOnceAndInOrder(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			if _, err := b.client.ChangeSettings(t.Context(), b.queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
				s.Audit = sluice.AuditFull
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			b.tend()
			var ids []sluice.ID
			for range flowsStarted {
				id, err := flow.Start(t.Context(), b.store, flow.Flow{Name: "fan", Nodes: []flow.Node{
					{Name: "left", Queue: b.queue},
					{Name: "right", Queue: b.queue},
					{Name: "each", Queue: b.queue, After: []string{"left", "right"}, Over: "right"},
					{Name: "last", Queue: b.queue, After: []string{"left", "each"}},
				}})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			ended := make(chan struct{}, 2)
			begin := func() {
				flower := b.spawn("dying flower")
				go func() {
					_ = flower.Wait()
					ended <- struct{}{}
				}()
			}
			begin()
			begin()
			for range flowersKilled {
				<-ended
				begin()
			}
			<-ended
			<-ended
			for _, id := range ids {
				b.flowEnds(id)
			}
		})
	}
}

// flowEnds runs jobs until a flow has ended. It checks that each job of the flow has completed once, after the jobs
// before it.
func (b *bank) flowEnds(id sluice.ID) {
	b.Helper()
	var tree flow.Tree
	// The jobs of killed processes come back as their leases end. To look without a pause took 8 s of CPU and more.
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var err error
		if err = runJobsOfFlows(b.Context(), b.store, b.queue, "h:1:last"); err == nil {
			tree, err = flow.Read(b.Context(), b.store, id)
		}
		if err != nil && !errors.Is(err, sluice.ErrUnavailable) {
			b.Fatal(err)
		}
		if tree.State == flow.Completed {
			break
		}
		if tree.State == flow.Failed || time.Now().After(end) {
			b.Fatalf("the flow is %+v", tree)
		}
	}
	last, each := b.ranOnce(flow.NodeID(id, "last")), []sluice.ID{flow.NodeID(id, "left"), flow.NodeID(id, "right")}
	for i := range 3 {
		each = append(each, flow.ElementID(id, "each", i))
	}
	for _, before := range each {
		if completed := b.ranOnce(before).completed; completed.Seq > last.claimed.Seq {
			b.Errorf("the last was claimed by %+v, and job %s completed by %+v", last.claimed, before, completed)
		}
	}
	if _, err := b.store.Job(b.Context(), flow.ElementID(id, "each", 3)); !errors.Is(err, sluice.ErrNotFound) {
		b.Errorf("a fourth element: %v", err)
	}
}

// ran is the audit of a job's first claim, and of its completion. Their numbers tell what came first: a clock can be set back.
type ran struct{ claimed, completed sluice.AuditEntry }

// ranOnce reads from the audit that a job was claimed and completed. The job must have completed once.
func (b *bank) ranOnce(id sluice.ID) (r ran) {
	b.Helper()
	entries, err := b.client.Audit(b.Context(), sluice.AuditFilter{JobID: id, Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	completed := 0
	for _, e := range entries { // the newest first
		switch e.Event {
		case sluice.EventClaim:
			r.claimed = e
		case sluice.EventComplete:
			r.completed, completed = e, completed+1
		}
	}
	if completed != 1 {
		b.Errorf("job %s completed %d times", id, completed)
	}
	return r
}
