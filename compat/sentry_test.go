package compat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getsentry/sentry-go"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// report sends a failed attempt to Sentry: the error with its stack, and the job with its queue.
func report(client *sentry.Client) func(context.Context, worker.Failure) {
	return func(_ context.Context, f worker.Failure) {
		scope := sentry.NewScope()
		scope.SetTags(map[string]string{"queue": f.Queue, "tenant": f.Tenant, "dead": fmt.Sprint(f.Dead)})
		scope.SetContext("job", sentry.Context{"id": f.ID.String(), "attempt": f.Attempts + 1, "took": f.Took.String(), "retry in": f.RetryIn.String()})
		if panicked := (*worker.PanicError)(nil); errors.As(f.Err, &panicked) {
			scope.SetContext("panic", sentry.Context{"stack": string(panicked.Stack)})
			scope.SetLevel(sentry.LevelFatal)
		}
		sentry.NewHub(client, scope).CaptureException(f.Err)
	}
}

// TestFailuresReachSentry runs Sentry's own client against a server that keeps the events.
func TestFailuresReachSentry(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- string(body)
		w.WriteHeader(http.StatusOK)
	}))
	defer server.Close()
	client, err := sentry.NewClient(sentry.ClientOptions{Dsn: strings.Replace(server.URL, "http://", "http://key@", 1) + "/1", AttachStacktrace: true})
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(memory.Options{})
	jobs := sluice.NewClient(store, sluice.ClientOptions{Logger: slog.New(slog.DiscardHandler)})
	w := worker.New(store, worker.Options{Logger: slog.New(slog.DiscardHandler), OnFailure: report(client)})
	mails := sluice.QueueOf[string]("mail")
	worker.Handle(w, mails, func(_ context.Context, job *worker.Job[string]) error {
		if job.Payload == "bob" {
			panic("nil map")
		}
		return worker.Permanent(errors.New("no such mailbox"))
	}, worker.QueueOptions{})
	for _, to := range []string{"ada", "bob"} {
		if _, err := mails.Enqueue(t.Context(), jobs, to, sluice.EnqueueOptions{Tenant: "acme"}); err != nil {
			t.Fatal(err)
		}
	}
	if ran, err := w.Once(t.Context()); err != nil || ran != 2 {
		t.Fatalf("%d jobs ran: %v", ran, err)
	}
	if !client.Flush(10 * time.Second) {
		t.Fatal("the client did not send what it had")
	}
	events := []string{compact(t, <-got), compact(t, <-got)} // the events arrive in any order
	for _, want := range [][]string{
		{`"no such mailbox"`, `"queue":"mail"`, `"tenant":"acme"`, `"dead":"true"`, `"attempt":1`},
		{`"panic: nil map"`, `"dead":"false"`, "sentry_test.go", `"level":"fatal"`},
	} {
		at := slices.IndexFunc(events, func(event string) bool { return strings.Contains(event, want[0]) })
		if at < 0 {
			t.Fatalf("no event has %s:\n%s", want[0], strings.Join(events, "\n"))
		}
		for _, part := range want {
			if !strings.Contains(events[at], part) {
				t.Errorf("the event lacks %s:\n%s", part, events[at])
			}
		}
	}
}

// compact returns the event, which is the last line of Sentry's envelope, without blanks.
func compact(t *testing.T, envelope string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(envelope), "\n")
	var event any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &event); err != nil {
		t.Fatalf("%v:\n%s", err, envelope)
	}
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
