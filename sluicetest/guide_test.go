package sluicetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/sluicetest"
	"github.com/sluice-queue/sluice/worker"
)

// The guides show these tests.

func sendMail(_ context.Context, job *worker.Job[mail]) error {
	if job.Attempt() < 3 {
		return worker.RetryAfter(time.Duration(job.Attempt())*time.Hour, errors.New("smtp: 451"))
	}
	return nil
}

func TestMailIsSentAfterTwoFailures(t *testing.T) {
	b := sluicetest.New(t, sluicetest.Options{})
	worker.Handle(b.Worker, mails, sendMail, worker.QueueOptions{})
	if _, err := mails.Enqueue(t.Context(), b.Client, mail{"ada"}, sluice.EnqueueOptions{}); err != nil {
		t.Fatal(err)
	}
	if attempts := b.Advance(24 * time.Hour); attempts != 3 { // at 0:00, 1:00 and 3:00 of the test's clock
		t.Errorf("%d attempts, want 3", attempts)
	}
	if sent := sluicetest.Enqueued(t, b.Store, mails); sent[0].State != sluice.StateCompleted {
		t.Errorf("the mail is %s", sent[0].State)
	}
}

func TestMailsAreSentInOneCall(t *testing.T) {
	b := sluicetest.New(t, sluicetest.Options{})
	var calls []int
	worker.HandleMany(b.Worker, mails, func(_ context.Context, jobs []*worker.Job[mail]) error {
		calls = append(calls, len(jobs))
		return nil
	}, worker.ManyOptions{Size: 2})
	for _, to := range []string{"ada", "bob", "eve"} {
		if _, err := mails.Enqueue(t.Context(), b.Client, mail{to}, sluice.EnqueueOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if b.Drain(); !slices.Equal(calls, []int{2, 1}) {
		t.Errorf("calls of %v mails, want 2 and 1", calls)
	}
}

func TestDocumentIsIndexedOnce(t *testing.T) {
	b := sluicetest.New(t, sluicetest.Options{})
	index := sluice.QueueOf[int]("index")
	var indexed []int
	worker.Handle(b.Worker, index, func(_ context.Context, job *worker.Job[int]) error {
		indexed = append(indexed, job.Payload)
		return nil
	}, worker.QueueOptions{})
	for version := range 3 {
		_, err := index.Enqueue(t.Context(), b.Client, version, sluice.EnqueueOptions{
			Key: "document-7", OnDuplicate: sluice.Debounce, Delay: 30 * time.Second, KeyWindow: 5 * time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Advance(20 * time.Second)
	}
	if b.Advance(time.Minute); !slices.Equal(indexed, []int{2}) {
		t.Errorf("indexed the versions %v, want the last", indexed)
	}
}

func TestReportComesEachNight(t *testing.T) {
	b := sluicetest.New(t, sluicetest.Options{Start: time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)})
	var days []string
	worker.Handle(b.Worker, sluice.QueueOf[struct{ Day string }]("reports"), func(_ context.Context, job *worker.Job[struct{ Day string }]) error {
		days = append(days, job.Payload.Day)
		return nil
	}, worker.QueueOptions{})
	nightly := schedule.Definition{Queue: "reports", Cron: "30 2 * * *", Zone: "Europe/Berlin", Payload: []byte(`{"day":"{{date}}"}`)}
	if _, err := schedule.Set(t.Context(), b.Store, "nightly", nightly, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	b.Advance(48 * time.Hour) // on the second day, the clock skips half past two
	if want := []string{"2026-03-28", "2026-03-29"}; !slices.Equal(days, want) {
		t.Errorf("reports of %v, want %v", days, want)
	}
}

func TestEachAccountIsRendered(t *testing.T) {
	b := sluicetest.New(t, sluicetest.Options{})
	worker.Handle(b.Worker, sluice.QueueOf[struct{}]("list"), func(_ context.Context, job *worker.Job[struct{}]) error {
		return job.SetResult([]string{"ada", "bob"})
	}, worker.QueueOptions{})
	var rendered []string
	worker.Handle(b.Worker, sluice.QueueOf[mail]("render"), func(_ context.Context, job *worker.Job[mail]) error {
		rendered = append(rendered, job.Payload.To)
		return nil
	}, worker.QueueOptions{})
	_, err := flow.Start(t.Context(), b.Store, flow.Flow{Name: "monthly", Nodes: []flow.Node{
		{Name: "accounts", Queue: "list"},
		{Name: "statements", Queue: "render", After: []string{"accounts"}, Over: "accounts", Payload: []byte(`{"to":"{{item}}"}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if b.Drain(); !slices.Equal(rendered, []string{"ada", "bob"}) {
		t.Errorf("rendered %v, want both accounts", rendered)
	}
}

func TestHeldMailWaits(t *testing.T) {
	b := sluicetest.New(t, sluicetest.Options{})
	worker.Handle(b.Worker, mails, func(context.Context, *worker.Job[mail]) error { return nil }, worker.QueueOptions{})
	receipt, err := mails.Enqueue(t.Context(), b.Client, mail{"ada"}, sluice.EnqueueOptions{Hold: "new customer"})
	if err != nil {
		t.Fatal(err)
	}
	if ran := b.Drain(); ran != 0 {
		t.Error("a held mail was sent")
	}
	if err := hold.Release(t.Context(), b.Store, []sluice.ID{receipt.ID}, sluice.Act{By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if ran := b.Drain(); ran != 1 {
		t.Error("a released mail was not sent")
	}
}

func TestFullQueueRefuses(t *testing.T) {
	b := sluicetest.New(t, sluicetest.Options{})
	settings := sluice.DefaultSettings()
	settings.MaxWaiting = 1
	if _, err := b.Client.EnsureQueue(t.Context(), mails.Name(), settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	var errs []error
	for _, to := range []string{"ada", "bob"} {
		_, err := mails.Enqueue(t.Context(), b.Client, mail{to}, sluice.EnqueueOptions{})
		errs = append(errs, err)
	}
	if errs[0] != nil || !errors.Is(errs[1], pressure.ErrFull) {
		t.Errorf("the answers are %v, want only the second refused", errs)
	}
}

func TestBookingsOfAnAccountKeepTheirOrder(t *testing.T) {
	b := sluicetest.New(t, sluicetest.Options{})
	ledger := sluice.QueueOf[int]("ledger")
	var booked []int
	worker.Handle(b.Worker, ledger, func(_ context.Context, job *worker.Job[int]) error {
		if job.Attempt() == 1 && job.Payload == 100 {
			return errors.New("the ledger is locked")
		}
		booked = append(booked, job.Payload)
		return nil
	}, worker.QueueOptions{})
	for _, cents := range []int{100, -40} {
		if _, err := ledger.Enqueue(t.Context(), b.Client, cents, sluice.EnqueueOptions{OrderKey: "account-7"}); err != nil {
			t.Fatal(err)
		}
	}
	if b.Advance(time.Hour); !slices.Equal(booked, []int{100, -40}) {
		t.Errorf("booked %v, want the order of the enqueues", booked)
	}
}
