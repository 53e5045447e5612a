package faulttest

import (
	"context"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/worker"
)

// runPosterOf is a worker process of a program version.
func runPosterOf(ctx context.Context, store sluice.Store, ledger demo.Ledger, queue, version string) error {
	w := worker.New(store, worker.Options{Slots: 16, Version: version, Logger: quiet})
	worker.Handle(w, sluice.QueueOf[demo.Payment](queue), func(ctx context.Context, job *worker.Job[demo.Payment]) error {
		return ledger.Post(ctx, job.Claim, job.Payload)
	}, worker.QueueOptions{})
	return w.Run(ctx)
}

// TestARollingDeployLosesNothingAndDoublesNothing drains the processes of an old version while payments arrive. The
// test kills one of them while it is quiesced.
func TestARollingDeployLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			b.lease(time.Minute) // on a busy machine, a short lease runs out
			b.tend()
			old := []*exec.Cmd{b.spawn("poster of 1.4.0"), b.spawn("poster of 1.4.0")}
			b.payFor(time.Second)
			b.spawn("poster of 1.5.0")
			target := presence.Target{Version: "1.4.0"}
			if _, err := presence.Instruct(t.Context(), b.store, target, presence.WantedQuiesce, 0, sluice.Act{By: "ada", Reason: "deploy 1.5.0"}); err != nil {
				t.Fatal(err)
			}
			left := b.drained(target)
			if len(left.Holders) != len(old) {
				t.Errorf("%d processes of the old version are listed, want %d", len(left.Holders), len(old))
			}
			drained, err := b.store.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			signalTo(t, old[0], syscall.SIGKILL)
			b.payFor(time.Second)
			signalTo(t, old[1], syscall.SIGINT)
			if err := old[1].Wait(); err != nil {
				t.Errorf("the old process ended with %v", err)
			}
			b.settled()
			b.balance()
			b.noneClaimedBy(left.Holders, drained)
		})
	}
}

func (b *bank) lease(lease time.Duration) {
	b.Helper()
	if _, err := b.client.ChangeSettings(b.Context(), b.queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
		s.Lease = lease
		return nil
	}); err != nil {
		b.Fatal(err)
	}
}

// payFor enqueues payments for a while.
func (b *bank) payFor(while time.Duration) {
	b.Helper()
	for begun := time.Now(); time.Since(begun) < while; time.Sleep(20 * time.Millisecond) {
		if err := b.pay(10); err != nil {
			b.Fatal(err)
		}
	}
}

// drained enqueues payments until the processes of a target claim nothing and hold nothing.
func (b *bank) drained(target presence.Target) presence.Remaining {
	b.Helper()
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); {
		left, err := presence.Remains(b.Context(), b.store, target)
		if err != nil {
			b.Fatal(err)
		}
		if left.Quiet() {
			return left
		}
		b.payFor(20 * time.Millisecond)
	}
	b.Fatalf("%s is not quiet after ten minutes", target)
	return presence.Remaining{}
}

// noneClaimedBy checks that none of the holders claimed a job after an instant, and that no attempt failed.
func (b *bank) noneClaimedBy(holders []presence.Holder, after time.Time) {
	b.Helper()
	filter := sluice.JobFilter{Queue: b.queue, Limit: 1000}
	for {
		page, err := b.client.Jobs(b.Context(), filter)
		if err != nil {
			b.Fatal(err)
		}
		for _, job := range page.Jobs {
			if job.Attempts > 0 || job.Recoveries > 0 {
				b.Errorf("job %s has %d failed attempts and %d lost holders", job.ID, job.Attempts, job.Recoveries)
			}
			if job.ClaimedAt.After(after) && slices.ContainsFunc(holders, func(h presence.Holder) bool { return h.ID == job.Holder }) {
				b.Errorf("%s claimed job %s after it was drained", job.Holder, job.ID)
			}
		}
		if page.Next.IsZero() {
			return
		}
		filter.Before = page.Next
	}
}
