package faulttest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
)

const (
	batchesOpened = 60
	batchJobs     = 4
	batchKills    = 16 // kills of workers, and as many of upkeeps
	callsQueue    = "calls"
)

// dieSoon kills the process at a random moment within a time.
func dieSoon(within time.Duration) {
	time.Sleep(rand.N(within))
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// runDyingMember is a process that ends jobs of batches. It is killed at a random moment: after the claim, before the
// settlement, within the settlement's transaction, or before its answer.
func runDyingMember(ctx context.Context, store sluice.Store, queue string) error {
	go dieSoon(40 * time.Millisecond)
	for n := 0; ctx.Err() == nil; n++ {
		if err := endMembers(ctx, store, queue, fmt.Sprintf("h:%d:%d", os.Getpid(), n)); err != nil {
			return err
		}
	}
	return nil
}

// endMembers claims a few jobs and settles them: one in six as dead, the others as completed.
func endMembers(ctx context.Context, store sluice.Store, queue, holder string) error {
	claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: queue, Limit: 3, Holder: holder, Lease: 300 * time.Millisecond, Token: sluice.NewToken()})
	if err != nil {
		return err
	}
	var settlements []sluice.Settlement
	for _, c := range claimed.Jobs {
		s := sluice.Settlement{ID: c.ID, Token: c.Token, Holder: holder, Event: sluice.EventComplete}
		if c.ID[15]%6 == 0 {
			s.Event, s.Error = sluice.EventBury, "no route"
		}
		settlements = append(settlements, s)
	}
	_, err = store.Settle(ctx, settlements) // a job whose claim is lost belongs to another process
	return err
}

// runDyingAdvancer is a process that recovers jobs and advances batches, as the leading upkeep does. It is killed at a
// random moment: within a transaction, or between the commit and its answer.
func runDyingAdvancer(ctx context.Context, store sluice.Store, queue string) error {
	go dieSoon(60 * time.Millisecond)
	for ctx.Err() == nil {
		if err := tendBatches(ctx, store, queue); err != nil {
			return err
		}
	}
	return nil
}

func tendBatches(ctx context.Context, store sluice.Store, queue string) error {
	if _, err := store.Recover(ctx, queue, 100, "upkeep"); err != nil {
		return err
	}
	_, err := batch.Given(store).AdvanceBatches(ctx, 7)
	return err
}

func TestBatchesWhoseWorkersAndUpkeepsAreKilledCountExactlyAndCallBackOnce(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			settings := sluice.DefaultSettings()
			settings.MaxRecoveries = 10_000 // so that no job is buried as poison
			if _, err := b.client.EnsureQueue(t.Context(), "members", settings, sluice.Act{By: "ada"}); err != nil {
				t.Fatal(err)
			}
			b.queue = "members"
			all := b.openBatches()
			ended := make(chan string, 4)
			begin := func(role string) {
				process := b.spawn(role)
				go func() {
					_ = process.Wait()
					ended <- role
				}()
			}
			for range 2 {
				begin("dying member")
				begin("dying advancer")
			}
			for range 2*batchKills - 4 {
				begin(<-ended)
			}
			for range 4 {
				<-ended
			}
			b.completedOnceEach(all)
		})
	}
}

// openBatches opens and closes batches with jobs.
func (b *bank) openBatches() (all []sluice.ID) {
	b.Helper()
	for range batchesOpened {
		callback := &batch.Callback{Queue: callsQueue}
		opened, err := batch.Open(b.Context(), b.store, batch.Batch{Callbacks: batch.Callbacks{OnComplete: callback}}, sluice.Act{By: "ada"})
		if err != nil {
			b.Fatal(err)
		}
		jobs := make([]sluice.NewJob, batchJobs)
		for i := range jobs {
			jobs[i] = sluice.NewJob{Queue: b.queue, Payload: json.RawMessage(`{}`), EnqueueOptions: sluice.EnqueueOptions{Batch: opened.ID}}
		}
		if _, err := b.client.EnqueueMany(b.Context(), jobs); err != nil {
			b.Fatal(err)
		}
		if err := batch.Close(b.Context(), b.store, opened.ID, sluice.Act{By: "ada"}); err != nil {
			b.Fatal(err)
		}
		all = append(all, opened.ID)
	}
	return all
}

// completedOnceEach settles the jobs that the killed processes have left. It checks that each batch counts exactly and
// has called back once.
func (b *bank) completedOnceEach(all []sluice.ID) {
	b.Helper()
	for left, n := 1, 0; left > 0; n++ {
		if err := endMembers(b.Context(), b.store, b.queue, fmt.Sprint("h:1:", n)); err != nil {
			b.Fatal(err)
		}
		if err := tendBatches(b.Context(), b.store, b.queue); err != nil {
			b.Fatal(err)
		}
		open, err := batch.List(b.Context(), b.store, batch.Filter{Unfinished: true})
		if err != nil {
			b.Fatal(err)
		}
		left = len(open)
	}
	for _, id := range all {
		counted, err := batch.Given(b.store).RecountBatch(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		if !counted.Exact() || counted.Ended.Total != batchJobs || counted.Batch.Total != batchJobs || counted.Ended.Dead != counted.Batch.Dead {
			b.Errorf("batch %s counts %+v, and its jobs are %+v", id, counted.Batch.Counts, counted.Ended)
		}
	}
	page, err := b.client.Jobs(b.Context(), sluice.JobFilter{Queue: callsQueue, Limit: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	calls := make(map[string]int)
	for _, job := range page.Jobs {
		calls[job.Labels[batch.Label]]++
	}
	for _, id := range all {
		if calls[id.String()] != 1 {
			b.Errorf("batch %s has called back %d times, want once", id, calls[id.String()])
		}
	}
}
