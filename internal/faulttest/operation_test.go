package faulttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/upkeep"
)

// runDyingUpkeep is an upkeep process that is killed at one of the steps of an operation.
func runDyingUpkeep(ctx context.Context, store sluice.Store) error {
	return upkeep.New(dyingStore{store, operation.Given(store), schedule.Given(store)}, upkeep.Options{Interval: 20 * time.Millisecond, Logger: quiet}).Run(ctx)
}

// dyingStore kills its process after one of its first three verbs of operations. The verbs decide on a batch, act on the
// batch and store its counts.
type dyingStore struct {
	sluice.Store
	operations
	schedules
}

// Unwrap returns the decorated store.
func (s dyingStore) Unwrap() sluice.Store { return s.Store }

// operations and schedules keep the embedded ports apart.
type (
	operations = operation.Store
	schedules  = schedule.Store
)

// verbs counts what the process has done.
var verbs atomic.Int32

func (s dyingStore) die() {
	if verbs.Add(1) >= 3 || rand.IntN(2) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (s dyingStore) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	errs, err := s.Store.Requeue(ctx, ids, act)
	s.die()
	return errs, err
}

func (s dyingStore) FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) ([]schedule.Fire, error) {
	fires, err := s.schedules.FireSchedule(ctx, name, instants, act, checker)
	s.die()
	return fires, err
}

func (s dyingStore) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	saved, err := s.operations.SaveOperation(ctx, op, act)
	s.die()
	return saved, err
}

// redriven is how many dead letters are redriven in each store.
const redriven = 2000

func TestRedriveWhoseUpkeepIsKilledRequeuesEachJobOnce(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			jobs := make([]sluice.NewJob, redriven)
			for i := range jobs {
				jobs[i] = sluice.NewJob{Queue: b.queue, Payload: []byte(`{}`)}
			}
			_, err := b.client.EnqueueMany(t.Context(), jobs)
			if err != nil {
				t.Fatal(err)
			}
			for b.work(func(sluice.ID) bool { return false }) > 0 {
			}
			op, err := operation.Start(t.Context(), b.store, operation.Operation{
				Kind: operation.KindRequeue, Query: search.Query{Queue: b.queue}, Canary: 50, StopIfFailed: 0.9,
			}, sluice.Act{By: "ada", Reason: "bank is back"})
			if err != nil {
				t.Fatal(err)
			}
			killed := b.carryOut(&op, func() { b.work(well) })
			for b.work(well) > 0 {
			}
			t.Logf("upkeep was killed %d times; %d watched, %d failed again", killed, op.WatchedEnded, op.WatchedFailed)
			if op.State != operation.StateDone || op.Done != redriven || op.Skipped != 0 || op.Failed != 0 || op.AtLeast || killed < 2 {
				t.Errorf("the operation is %+v after %d kills, want %d done after at least 2 kills", op, killed, redriven)
			}
			b.requeuedOnceEach(op)
		})
	}
}

// well reports whether a job can succeed by now, as seven of ten can.
func well(id sluice.ID) bool { return id[15]%10 < 7 }

// carryOut waits until two processes have carried an operation out. Each process is killed soon and started again.
// carryOut calls beside again and again meanwhile.
func (b *bank) carryOut(op *operation.Operation, beside func()) (killed int) {
	b.Helper()
	carriers := []*exec.Cmd{b.spawn("dying upkeep"), b.spawn("dying upkeep")}
	ended := make(chan int, len(carriers))
	wait := func(n int) {
		go func() {
			_ = carriers[n].Wait()
			ended <- n
		}()
	}
	for n := range carriers {
		wait(n)
	}
	for deadline := time.Now().Add(10 * time.Minute); op.EndedAt.IsZero(); {
		if time.Now().After(deadline) {
			b.Fatalf("not over after ten minutes: %+v", *op)
		}
		select {
		case n := <-ended:
			killed++
			carriers[n] = b.spawn("dying upkeep")
			wait(n)
		case <-time.After(20 * time.Millisecond):
			beside()
		}
		var err error
		if *op, err = operation.Read(b.Context(), b.store, op.ID); err != nil {
			b.Fatal(err)
		}
	}
	for _, carrier := range carriers {
		_ = carrier.Process.Kill()
	}
	for range carriers {
		<-ended
	}
	return killed
}

// work claims jobs. It completes the jobs that are well, and buries the others.
func (b *bank) work(well func(sluice.ID) bool) int {
	b.Helper()
	claimed, err := b.store.Claim(b.Context(), sluice.ClaimRequest{Queue: b.queue, Limit: 1000, Holder: "test:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil {
		b.Fatal(err)
	}
	settlements := make([]sluice.Settlement, len(claimed.Jobs))
	for i, c := range claimed.Jobs {
		settlements[i] = sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventComplete}
		if !well(c.ID) {
			settlements[i].Event, settlements[i].Error = sluice.EventBury, "account closed"
		}
	}
	if len(settlements) == 0 {
		return 0
	}
	errs, err := b.store.Settle(b.Context(), settlements)
	if err := errors.Join(append(errs, err)...); err != nil {
		b.Fatal(err)
	}
	return len(settlements)
}

// requeuedOnceEach checks that every job was requeued once, and that the audit has one entry about it.
func (b *bank) requeuedOnceEach(op operation.Operation) {
	b.Helper()
	told := make(map[sluice.ID]int)
	filter := sluice.AuditFilter{Object: audit.ObjectJob, Name: b.queue, Limit: 10_000}
	for {
		entries, err := b.client.Audit(b.Context(), filter)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range entries {
			filter.Before = e.Seq
			if e.Event == sluice.EventRequeue && e.Actor == "ada" && strings.Contains(e.Reason, op.ID.String()) {
				told[e.JobID]++
			}
		}
		if len(entries) < filter.Limit {
			break
		}
	}
	lives, page := 0, sluice.Page{}
	for more := true; more; more = !page.Next.IsZero() {
		var err error
		page, err = b.client.Jobs(b.Context(), sluice.JobFilter{Queue: b.queue, Cursor: page.Cursor, Limit: 10_000})
		if err != nil {
			b.Fatal(err)
		}
		for _, job := range page.Jobs {
			lives++
			want := sluice.StateCompleted
			if !well(job.ID) {
				want = sluice.StateDead
			}
			if job.Generation != 2 || job.State != want || told[job.ID] != 1 {
				b.Fatalf("job %s is %s in its life %d, and was told of %d times", job.ID, job.State, job.Generation, told[job.ID])
			}
		}
	}
	if lives != redriven || len(told) != redriven {
		b.Errorf("%d jobs, %d of which were requeued", lives, len(told))
	}
}
