package httpapi_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/remote"
	"github.com/sluice-queue/sluice/worker"
)

// asRole opens a remote store with a new token of a role.
func asRole(t *testing.T, behind sluice.Store, url string, role access.Role, queues ...string) *remote.Store {
	t.Helper()
	_, secret, err := access.Create(t.Context(), behind, access.Token{Name: string(role), Role: role, Bounds: access.Bounds{Queues: queues}}, sluice.Act{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	store, err := remote.Open(t.Context(), url, remote.Options{Token: secret, CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// withTokens serves the API of a store in memory, with tokens required.
func withTokens(t *testing.T) (behind sluice.Store, url string) {
	t.Helper()
	behind = memory.New(memory.Options{})
	server := httptest.NewServer(httpapi.New(behind, httpapi.Options{}))
	t.Cleanup(server.Close)
	return behind, server.URL
}

// TestWorkerOverHTTPNeedsAWorkersTokenAlone runs a worker in Go whose token has the role worker, and is bounded to its
// queue.
func TestWorkerOverHTTPNeedsAWorkersTokenAlone(t *testing.T) {
	t.Parallel()
	behind, url := withTokens(t)
	client := sluice.NewClient(behind, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Limits, settings.MaxAttempts = "bank", 2
	if _, err := limit.Given(behind).SaveLimit(t.Context(), limit.Limit{Name: "bank", Concurrency: 10}, sluice.Act{By: "test", ID: sluice.NewID()}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	store := asRole(t, behind, url, access.RoleWorker, "mail")
	mail := sluice.QueueOf[string]("mail")
	ids := make(map[string]sluice.ID)
	for _, what := range []string{"done", "fails", "waits", "limited"} {
		receipt, err := mail.Enqueue(t.Context(), sluice.NewClient(store, sluice.ClientOptions{}), what, sluice.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ids[what] = receipt.ID
	}
	w := worker.New(store, worker.Options{Slots: 4, Poll: 100 * time.Millisecond})
	waits, cancelled := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	worker.Handle(w, mail, func(ctx context.Context, job *worker.Job[string]) error {
		switch job.Payload {
		case "done":
			job.Progress(0.5, "half")
			return errors.Join(job.SaveCheckpoint(ctx, 7), job.SetResult("sent"))
		case "fails":
			return errors.New("no route")
		case "waits":
			once.Do(func() { close(waits) })
			<-ctx.Done()
			cancelled <- context.Cause(ctx)
			return ctx.Err()
		}
		return worker.RateLimited(time.Hour)
	}, worker.QueueOptions{MaxAttempts: 1})
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the worker: %v", err)
		}
	})
	defer ended.Wait()
	defer stop()
	if end, err := await.New(store).Wait(t.Context(), ids["done"]); err != nil || string(end.Result) != `"sent"` {
		t.Errorf("the job ended with %+v, %v, want the result \"sent\"", end, err)
	}
	var failed *await.FailedError // at the handler's own limit of attempts, which is lower than the queue's
	if _, err := await.New(store).Wait(t.Context(), ids["fails"]); !errors.As(err, &failed) {
		t.Errorf("the failing job ended with %v, want a FailedError", err)
	}
	<-waits
	if holders, err := presence.Holders(t.Context(), behind); err != nil || len(holders) != 1 {
		t.Errorf("the store knows the processes %+v, %v, want the worker alone", holders, err)
	}
	if err := client.Cancel(t.Context(), []sluice.ID{ids["waits"]}, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if cause := <-cancelled; !errors.Is(cause, sluice.ErrCancelled) {
		t.Errorf("the handler was stopped by %v, want ErrCancelled", cause)
	}
	until(t, "the limit is closed", func() bool {
		found, err := limit.Given(behind).Limits(t.Context(), []string{"bank"})
		return err == nil && len(found) == 1 && found[0].ClosedUntil.After(time.Now().Add(50*time.Minute))
	})
}

// until waits until is returns true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so: %s", what)
		}
	}
}

func TestErrorsOverHTTPAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	behind, url := withTokens(t)
	settings := sluice.DefaultSettings()
	settings.MaxWaiting = 1
	if _, err := sluice.NewClient(behind, sluice.ClientOptions{}).EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	operator, producer := asRole(t, behind, url, access.RoleOperator), asRole(t, behind, url, access.RoleProducer, "mail")
	client := sluice.NewClient(producer, sluice.ClientOptions{})
	job := sluice.NewJob{Queue: "mail", Payload: []byte("1")}
	receipt, err := client.Enqueue(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	var full *pressure.FullError
	if _, err := client.Enqueue(t.Context(), job); !errors.As(err, &full) || full.Queue != "mail" || full.Limit != 1 || full.RetryAfter <= 0 {
		t.Errorf("the enqueue got %v, want a FullError of mail with limit 1", err)
	}
	other := job
	other.Queue = "sms"
	if _, err := client.Enqueue(t.Context(), other); !errors.Is(err, remote.ErrRefused) {
		t.Errorf("another queue: %v", err)
	}
	if _, err := producer.Jobs(t.Context(), sluice.JobFilter{}); !errors.Is(err, remote.ErrRefused) {
		t.Errorf("a list for a producer: %v", err)
	}
	if _, err := operator.Job(t.Context(), sluice.NewID()); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
	errs, err := operator.DeleteJobs(t.Context(), []sluice.ID{receipt.ID}, sluice.Act{By: "ada", Reason: "test"})
	if err != nil || !errors.Is(errs[0], sluice.ErrNotAllowed) {
		t.Errorf("delete a job that waits: %v, %v", errs, err)
	}
	var invalid *sluice.InvalidError
	if err := operator.DeleteQueue(t.Context(), "mail", sluice.Act{By: "ada"}); !errors.As(err, &invalid) {
		t.Errorf("delete a queue without a reason: %v", err)
	}
	var notEmpty *sluice.QueueNotEmptyError
	if err := operator.DeleteQueue(t.Context(), "mail", sluice.Act{By: "ada", Reason: "test"}); !errors.As(err, &notEmpty) || notEmpty.Holds.Unfinished != 1 {
		t.Errorf("delete a queue with a job: %v", err)
	}
	if why, err := explain.Job(t.Context(), operator, receipt.ID); err != nil || len(why.Reasons) == 0 {
		t.Errorf("the explanation is %+v, %v, want some reasons", why, err)
	}
	if reports, err := progress.Of(t.Context(), operator, receipt.ID); err != nil || len(reports) > 0 {
		t.Errorf("the progress is %+v, %v, want none", reports, err)
	}
}
