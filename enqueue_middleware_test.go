package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

type enqueueNext = func(context.Context, []sluice.NewJob) ([]sluice.Receipt, error)

func clientWithin(around ...sluice.EnqueueMiddleware) *sluice.Client {
	return sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{Middleware: around})
}

func TestMiddlewareOfTheClientSeesAndChangesJobsInOrder(t *testing.T) {
	t.Parallel()
	var order []string
	label := func(name string) sluice.EnqueueMiddleware {
		return func(ctx context.Context, jobs []sluice.NewJob, next enqueueNext) ([]sluice.Receipt, error) {
			order = append(order, name)
			for i := range jobs {
				if jobs[i].ID.IsZero() {
					t.Error("a job has no id")
				}
				jobs[i].Labels = map[string]string{"by": name}
			}
			return next(ctx, jobs)
		}
	}
	client := clientWithin(label("outer"), label("inner"))
	receipt, err := sluice.QueueOf[string]("mail").Enqueue(t.Context(), client, "ada", sluice.EnqueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := client.Job(t.Context(), receipt.ID)
	if err != nil || job.Labels["by"] != "inner" || strings.Join(order, " ") != "outer inner" {
		t.Errorf("labels %v, order %v, %v", job.Labels, order, err)
	}
}

func TestMiddlewareOfTheClientRefusesJobs(t *testing.T) {
	t.Parallel()
	closed := errors.New("the shop is closed")
	client := clientWithin(func(context.Context, []sluice.NewJob, enqueueNext) ([]sluice.Receipt, error) { return nil, closed })
	_, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: json.RawMessage(`1`)})
	if !errors.Is(err, closed) {
		t.Errorf("got %v", err)
	}
	if queues, err := client.Queues(t.Context(), sluice.QueueFilter{}); err != nil || len(queues) != 0 {
		t.Errorf("%d queues, %v", len(queues), err)
	}
}

func TestMiddlewareOfTheClientCannotBreakAnEnqueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		around sluice.EnqueueMiddleware
		says   string
	}{
		"no call of next": {func(context.Context, []sluice.NewJob, enqueueNext) ([]sluice.Receipt, error) { return nil, nil }, "0 receipts for 1 jobs"},
		"a payload that is no JSON": {func(ctx context.Context, jobs []sluice.NewJob, next enqueueNext) ([]sluice.Receipt, error) {
			jobs[0].Payload = json.RawMessage(`{`)
			return next(ctx, jobs)
		}, "JSON"},
		"nil": {nil, "a nil function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientWithin(c.around)
			_, err := sluice.QueueOf[string]("mail").Enqueue(t.Context(), client, "ada", sluice.EnqueueOptions{})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
}
