package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/store/memory"
)

// Payment is the payload of the examples. A queue is named once, where both the producer and the
// worker see it.
type Payment struct {
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

var Payments = sluice.QueueOf[Payment]("payments")

func ExampleQueueOf() {
	ctx := context.Background()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})

	receipt, err := Payments.Enqueue(ctx, client, Payment{"acme", 4200}, sluice.EnqueueOptions{
		Tenant: "acme",
		Delay:  time.Hour,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := client.Job(ctx, receipt.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(job.State, job.Tenant, string(job.Payload))
	// Output: queued acme {"account":"acme","cents":4200}
}

func ExampleClient_EnqueueMany() {
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})

	_, err := client.EnqueueMany(context.Background(), []sluice.NewJob{
		{Queue: "payments", Payload: []byte(`{"account":"acme"}`)},
		{Queue: "payments", Payload: []byte(`{"account":`)},
		{Queue: "payments", Payload: []byte(`{"account":"globex"}`)},
	})

	var batch *sluice.BatchError
	if errors.As(err, &batch) {
		fmt.Println(batch.Failed[1])
	}
	depth, _ := client.Depth(context.Background(), "payments")
	fmt.Println("stored:", depth.Ready)
	// Output:
	// invalid payload: it is not valid JSON: unexpected end of JSON input
	// stored: 2
}

// A key makes an enqueue idempotent: however often it is sent, one job is stored.
func ExampleEnqueueOptions_key() {
	ctx := context.Background()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	order := sluice.EnqueueOptions{Key: "order-42", KeyScope: sluice.ForWindow, KeyWindow: 24 * time.Hour}

	first, _ := Payments.Enqueue(ctx, client, Payment{"acme", 4200}, order)
	second, _ := Payments.Enqueue(ctx, client, Payment{"acme", 4200}, order)
	fmt.Println(second.Duplicate, second.ID == first.ID)
	// Output: true true
}

// A job that waits can be replaced by a newer one with the same key.
func ExampleEnqueueOptions_replace() {
	ctx := context.Background()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	report := sluice.EnqueueOptions{Key: "report", OnDuplicate: sluice.Replace, Delay: time.Minute}

	first, _ := Payments.Enqueue(ctx, client, Payment{"acme", 1}, report)
	second, _ := Payments.Enqueue(ctx, client, Payment{"acme", 2}, report)
	old, _ := client.Job(ctx, first.ID)
	fmt.Println(second.Replaced == first.ID, old.State)
	// Output: true cancelled
}

func ExampleClient_Cancel() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	receipt, _ := Payments.Enqueue(ctx, client, Payment{"acme", 4200}, sluice.EnqueueOptions{})

	err := client.Cancel(ctx, []sluice.ID{receipt.ID}, sluice.Act{By: "ada", Reason: "customer left"})
	fmt.Println(err)

	entries, _ := client.Audit(ctx, sluice.AuditFilter{JobID: receipt.ID})
	fmt.Println(entries[0].Actor, entries[0].Event, entries[0].Reason)

	err = client.Cancel(ctx, []sluice.ID{receipt.ID}, sluice.Act{By: "ada"})
	fmt.Println(errors.Is(err, sluice.ErrNotAllowed))
	// Output:
	// <nil>
	// ada cancel customer left
	// true
}

func ExampleClient_Requeue() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	receipt, _ := Payments.Enqueue(ctx, client, Payment{"acme", 4200}, sluice.EnqueueOptions{})
	act := sluice.Act{By: "ada", Reason: "the bank is back"}
	_ = client.Cancel(ctx, []sluice.ID{receipt.ID}, act)

	fmt.Println(client.Requeue(ctx, []sluice.ID{receipt.ID}, act))
	job, _ := client.Job(ctx, receipt.ID)
	fmt.Println(job.State, "generation", job.Generation)
	// Output:
	// <nil>
	// queued generation 2
}

func ExampleClient_Reschedule() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	receipt, _ := Payments.Enqueue(ctx, client, Payment{"acme", 4200}, sluice.EnqueueOptions{})

	at := time.Date(2030, 1, 1, 16, 0, 0, 0, time.UTC)
	fmt.Println(client.Reschedule(ctx, []sluice.ID{receipt.ID}, at, sluice.Act{By: "ada"}))
	job, _ := client.Job(ctx, receipt.ID)
	fmt.Println(job.Label(time.Now()), job.DueAt)
	// Output:
	// <nil>
	// scheduled 2030-01-01 16:00:00 +0000 UTC
}

func ExampleClient_ChangeSettings() {
	ctx := context.Background()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	act := sluice.Act{By: "ada", Reason: "slow bank"}
	_, _ = client.EnsureQueue(ctx, "payments", sluice.DefaultSettings(), act)

	queue, err := client.ChangeSettings(ctx, "payments", act, func(s *sluice.Settings) error {
		s.Lease = 5 * time.Minute
		return nil
	})
	fmt.Println(queue.Settings.Lease, err)

	queue, err = changes.Undo(ctx, client, "payments", sluice.Act{By: "ada", Reason: "fast again"})
	fmt.Println(queue.Settings.Lease, err)
	// Output:
	// 5m0s <nil>
	// 1m0s <nil>
}

func ExampleClient_Pause() {
	ctx := context.Background()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	_, _ = Payments.Enqueue(ctx, client, Payment{"acme", 4200}, sluice.EnqueueOptions{})

	fmt.Println(client.Pause(ctx, "payments", sluice.Act{By: "ada", Reason: "the bank is down"}))
	queue, _ := client.Queue(ctx, "payments")
	fmt.Println(queue.Settings.Paused, queue.ChangedBy, queue.Reason)
	// Output:
	// <nil>
	// true ada the bank is down
}

func ExampleParseRate() {
	for _, text := range []string{"500/5s", "0.5", "90/1m30s", "3/h"} {
		rate, err := sluice.ParseRate(text)
		fmt.Println(rate, err)
	}
	// Output:
	// 500/5s <nil>
	// 1/2s <nil>
	// 90/1m30s <nil>
	// 3/h <nil>
}

func ExampleBackoff() {
	backoff := sluice.DefaultSettings().Backoff
	backoff.Jitter = 0
	for attempt := 1; attempt <= 6; attempt++ {
		fmt.Print(backoff.Delay(attempt), " ")
	}
	// Output: 2s 4s 8s 16s 32s 1m0s
}
