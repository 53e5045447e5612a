package faulttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/hold"
)

// reviewer is the actor in the processes that hold, edit and release jobs.
var reviewer = sluice.Act{By: "reviewer", Reason: "to look at it"}

// runReviewer holds the newest waiting jobs, edits them and releases them, again and again.
func runReviewer(ctx context.Context, store sluice.Store, queue string) error {
	client := sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})
	for ctx.Err() == nil {
		page, err := client.Jobs(ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateQueued}, Limit: 20})
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		ids := make([]sluice.ID, len(page.Jobs))
		for i, job := range page.Jobs {
			ids[i] = job.ID
		}
		if err := missed(hold.Hold(ctx, store, ids, reviewer)); err != nil {
			return fmt.Errorf("hold: %w", err)
		}
		for _, id := range ids {
			job, err := client.Job(ctx, id)
			if err == nil {
				err = edit.Job(ctx, store, job, edit.Change{Priority: 1 + rand.IntN(10), Labels: map[string]string{"reviewed": "yes"}}, reviewer, nil)
			}
			if err = missed(err); err != nil {
				return fmt.Errorf("edit: %w", err)
			}
		}
		if err := missed(hold.Release(ctx, store, ids, reviewer)); err != nil {
			return fmt.Errorf("release: %w", err)
		}
	}
	return nil
}

// missed returns err, unless the job has begun or another reviewer has changed it.
func missed(err error) error {
	var batch *sluice.BatchError
	if errors.As(err, &batch) {
		for _, one := range batch.Failed {
			if err := missed(one); err != nil {
				return err
			}
		}
		return nil
	}
	if errors.Is(err, sluice.ErrNotAllowed) || errors.Is(err, sluice.ErrConflict) {
		return nil
	}
	return err
}

// TestKilledReviewersLeaveNoJobHalfHeldOrHalfEdited kills processes that hold, edit and release jobs, and workers that
// run them. Afterwards the test finds and ends the holds that are left, and every payment is posted once.
func TestKilledReviewersLeaveNoJobHalfHeldOrHalfEdited(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			if _, err := b.client.ChangeSettings(t.Context(), b.queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error { s.Audit = sluice.AuditFull; return nil }); err != nil {
				t.Fatal(err)
			}
			b.tend()
			roles := []string{"poster", "reviewer", "reviewer"}
			processes := make([]*exec.Cmd, len(roles))
			for i, role := range roles {
				processes[i] = b.spawn(role)
			}
			for round := range 12 {
				if err := b.pay(40); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
				victim := round % len(processes)
				signalTo(t, processes[victim], syscall.SIGKILL)
				_ = processes[victim].Wait() // it was killed
				processes[victim] = b.spawn(roles[victim])
			}
			for i, role := range roles {
				if role == "reviewer" {
					signalTo(t, processes[i], syscall.SIGKILL)
					_ = processes[i].Wait() // it was killed
				}
			}
			left := b.releaseAll()
			b.settled()
			check := b.balance()
			holds, edits := b.reviewed()
			t.Logf("%d payments, %d holds, of which %d were left, %d edits, %d recovered", check.Payments, holds, left, edits, check.Recoveries)
			if holds == 0 || edits == 0 {
				t.Error("nobody held or edited a job")
			}
		})
	}
}

// releaseAll ends all holds, and returns their number.
func (b *bank) releaseAll() (released int) {
	b.Helper()
	for {
		held, err := hold.List(b.Context(), b.store, hold.Filter{Queue: b.queue})
		if err != nil {
			b.Fatal(err)
		}
		if len(held) == 0 {
			return released
		}
		for _, h := range held {
			if err := hold.Release(b.Context(), b.store, []sluice.ID{h.JobID}, sluice.Act{By: "test", Reason: "the reviewer is gone"}); err != nil {
				b.Fatal(err)
			}
			released++
		}
	}
}

// reviewed checks in the audit that no job was claimed while it was held. It returns the numbers of holds and edits.
func (b *bank) reviewed() (holds, edits int) {
	b.Helper()
	page, err := b.client.Jobs(b.Context(), sluice.JobFilter{Queue: b.queue, Limit: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	for _, job := range page.Jobs {
		entries, err := b.client.Audit(b.Context(), sluice.AuditFilter{JobID: job.ID, Limit: 1000})
		if err != nil {
			b.Fatal(err)
		}
		held, edited := false, false
		for _, e := range slices.Backward(entries) {
			switch e.Event {
			case audit.EventHold:
				held = true
				holds++
			case audit.EventReleaseHold:
				held = false
			case audit.EventEdit:
				edited = true
				edits++
			case sluice.EventClaim:
				if held {
					b.Errorf("job %s was claimed while it was held: %+v", job.ID, entries)
				}
			}
		}
		if edited != (job.Labels["reviewed"] == "yes") {
			b.Errorf("job %s has the labels %v; edited: %v", job.ID, job.Labels, edited)
		}
	}
	return holds, edits
}
