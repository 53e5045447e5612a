package sluice_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
)

// verbs counts the calls of a store that make or read queues.
type verbs struct {
	sluice.Store
	slow                            time.Duration // how long admitting queues takes
	queues, admits, saves, enqueues int
}

func (v *verbs) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	v.queues++
	return v.Store.Queues(ctx, filter)
}

func (v *verbs) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	v.admits++
	time.Sleep(v.slow)
	return v.Store.Admit(ctx, queues, act)
}

func (v *verbs) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	v.saves++
	return v.Store.SaveQueue(ctx, queue, act)
}

func (v *verbs) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	v.enqueues++
	return v.Store.Enqueue(ctx, jobs)
}

func TestManyNewQueuesAreMadeInOneCall(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]time.Duration{"quick": 0, "slow": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, store := newClient(t)
				counted := &verbs{Store: store, slow: slow}
				client := sluice.NewClient(counted, sluice.ClientOptions{})
				jobs := make([]sluice.NewJob, 1000)
				for i := range jobs {
					jobs[i] = sluice.NewJob{Queue: fmt.Sprint("q", i), Payload: []byte("1")}
				}
				if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(counted.queues, counted.admits, counted.saves, counted.enqueues); got != "2 1 0 1" {
					t.Errorf("%s calls that read, admit and save queues and store jobs; want 2 1 0 1", got)
				}
				if policy, err := admission.Of(t.Context(), store); err != nil || policy.Stored != len(jobs) {
					t.Errorf("%d queues, %v", policy.Stored, err)
				}
			})
		})
	}
}
