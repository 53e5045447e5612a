package sluicetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/sluicetest"
	"github.com/sluice-queue/sluice/worker"
)

func sendMail(_ context.Context, job *worker.Job[mail]) error {
	if job.Attempt() < 3 {
		return worker.RetryAfter(time.Duration(job.Attempt())*time.Hour, errors.New("smtp: 451"))
	}
	return nil
}

// The mail server answers at the third attempt, 3 hours later. The test takes a millisecond. docs/guide/test.md shows it.
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
