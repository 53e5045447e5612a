package httpapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// heldClaims is a store whose answer to a claim waits, unless the claim is sent again.
type heldClaims struct {
	sluice.Store
	goOn chan struct{}
}

func (h heldClaims) Unwrap() sluice.Store { return h.Store }

func (h heldClaims) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	out, err := h.Store.Claim(ctx, request)
	if !request.Again {
		<-h.goOn
	}
	return out, err
}

// claimFor sends a claim of the queue mail to a server without a socket.
func claimFor(ctx context.Context, t *testing.T, api http.Handler, more string) []held {
	t.Helper()
	return claimAs(ctx, t, api, `{"worker":"h:1:a","queues":["mail"],"token":"0123456789abcdef"`+more+`}`)
}

// claimAs sends a claim with a body of its own.
func claimAs(ctx context.Context, t *testing.T, api http.Handler, body string) []held {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost"+httpapi.Root+"/work/claim", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	var answer struct{ Jobs []held }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Errorf("%d %s: %v", w.Code, w.Body, err)
	}
	return answer.Jobs
}

// TestAClaimThatIsSentAgainKeepsItsJob lets a client leave while the store claims for it, and send the claim again before the server has
// handed the job back.
func TestAClaimThatIsSentAgainKeepsItsJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := heldClaims{memory.New(memory.Options{}), make(chan struct{})}
		api := httpapi.New(store, httpapi.Options{NoLogin: true, Logger: slog.New(slog.DiscardHandler)})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		id := must(client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")})).ID
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { claimFor(ctx, t, api, "") })
		synctest.Wait()
		leave()
		var got []held
		all.Go(func() { got = claimFor(t.Context(), t, api, `,"again":true`) })
		synctest.Wait()
		close(store.goOn)
		all.Wait()
		if job := must(client.Job(t.Context(), id)); len(got) != 1 || job.State != sluice.StateClaimed {
			t.Errorf("the client has %d jobs, and the job is %s, want 1 and claimed", len(got), job.State)
		}
	})
}

// TestAClaimThatIsSentAgainToAnotherServerKeepsItsJob lets a client leave a server while the store claims for it, and send the claim again
// to another server. Then the first one goes on.
func TestAClaimThatIsSentAgainToAnotherServerKeepsItsJob(t *testing.T) {
	t.Parallel()
	for _, queues := range []string{"", `,"queues":["mail","sms"]`, `,"limits":{"mail":1}`} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(memory.Options{})
			slow := heldClaims{store, make(chan struct{})}
			options := httpapi.Options{NoLogin: true, Logger: slog.New(slog.DiscardHandler)}
			one, other := httpapi.New(slow, options), httpapi.New(store, options)
			client := sluice.NewClient(store, sluice.ClientOptions{})
			id := must(client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")})).ID
			ctx, leave := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() { claimFor(ctx, t, one, queues) })
			synctest.Wait()
			leave()
			got := claimFor(t.Context(), t, other, `,"again":true`+queues)
			close(slow.goOn)
			all.Wait()
			if job := must(client.Job(t.Context(), id)); len(got) != 1 || job.State != sluice.StateClaimed {
				t.Errorf("%s: the client has %d jobs, and the job is %s, want 1 and claimed", queues, len(got), job.State)
			}
		})
	}
}

// TestAClaimWithoutANameIsHandedBack lets a client leave while the store claims for it. It cannot send the claim again.
func TestAClaimWithoutANameIsHandedBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := heldClaims{memory.New(memory.Options{}), make(chan struct{})}
		api := httpapi.New(store, httpapi.Options{NoLogin: true, Logger: slog.New(slog.DiscardHandler)})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		id := must(client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")})).ID
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { claimAs(ctx, t, api, `{"worker":"h:1:a","queues":["mail"]}`) })
		synctest.Wait()
		leave()
		close(store.goOn)
		all.Wait()
		if job := must(client.Job(t.Context(), id)); job.State != sluice.StateQueued {
			t.Errorf("the job is %s, want queued", job.State)
		}
	})
}

// TestEachClaimKeepsTheInterval claims before and after a queue may be claimed from again, in each way.
func TestEachClaimKeepsTheInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		api := httpapi.New(store, httpapi.Options{NoLogin: true, Logger: slog.New(slog.DiscardHandler)})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		settings := sluice.DefaultSettings()
		settings.Batch, settings.Interval = 1, 10*time.Second
		must(client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}))
		for range 9 {
			must(client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")}))
		}
		claims := func(want int, after time.Duration, more string) {
			t.Helper()
			begun := time.Now()
			if got := claimAs(t.Context(), t, api, `{"worker":"h:1:a","limit":5,"queues":["mail"`+more+`}`); len(got) != want || time.Since(begun) != after {
				t.Errorf("%s: %d jobs after %s, want %d after %s", more, len(got), time.Since(begun), want, after)
			}
		}
		const named = `],"token":"0123456789abcdef"`
		claims(1, 0, named)
		claims(0, 0, "]")
		claims(0, 0, `,"sms"]`)
		claims(0, 0, `],"limits":{"mail":5}`)
		claims(0, 3*time.Second, `],"wait":"3s"`)
		claims(1, 0, named+`,"again":true`)
		claims(1, 7*time.Second, `],"wait":"60s"`)
		claims(1, 10*time.Second, `,"sms"],"wait":"60s"`)
		time.Sleep(10 * time.Second)
		claims(1, 0, "]")
		time.Sleep(10 * time.Second)
		claims(1, 0, `,"sms"]`)
		claims(0, 0, "]")
		claims(1, 0, `],"proof":"00000000000000000000000000000001"`) // of a worker that keeps the interval itself
	})
}

// failsOnce is a store whose first claim fails.
type failsOnce struct {
	sluice.Store
	failed *bool
}

func (f failsOnce) Unwrap() sluice.Store { return f.Store }

func (f failsOnce) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	if !*f.failed {
		*f.failed = true
		return sluice.Claimed{}, sluice.ErrUnavailable
	}
	return f.Store.Claim(ctx, request)
}

// TestAQueueDoesNotRestAfterAClaimThatFailed claims again at once.
func TestAQueueDoesNotRestAfterAClaimThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := failsOnce{memory.New(memory.Options{}), new(bool)}
		api := httpapi.New(store, httpapi.Options{NoLogin: true, Logger: slog.New(slog.DiscardHandler)})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		settings := sluice.DefaultSettings()
		settings.Interval = time.Hour
		must(client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}))
		must(client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")}))
		if first, second := claimFor(t.Context(), t, api, ""), claimFor(t.Context(), t, api, ""); len(first) != 0 || len(second) != 1 {
			t.Errorf("%d jobs, and then %d, want 0 and 1", len(first), len(second))
		}
	})
}

// TestAJobThatComesAgainHoldsFromThenOn sends a claim again when a part of its lease is over.
func TestAJobThatComesAgainHoldsFromThenOn(t *testing.T) {
	t.Parallel()
	for _, queues := range []string{"", `,"queues":["mail","sms"]`, `,"limits":{"mail":1}`} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(memory.Options{})
			api := httpapi.New(store, httpapi.Options{NoLogin: true, Logger: slog.New(slog.DiscardHandler)})
			client := sluice.NewClient(store, sluice.ClientOptions{})
			id := must(client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")})).ID
			first := claimFor(t.Context(), t, api, `,"lease":"10s"`)
			time.Sleep(8 * time.Second)
			again := claimFor(t.Context(), t, api, `,"lease":"10s","again":true`+queues)
			job := must(client.Job(t.Context(), id))
			left := job.LeaseUntil.Sub(must(store.Now(t.Context())))
			if len(first) != 1 || len(again) != 1 || again[0].Token != first[0].Token || again[0].LeaseSeconds != left.Seconds() || again[0].LeaseUntil.Before(job.LeaseUntil.Add(-time.Second)) {
				t.Errorf("%s: got %+v and again %+v; the lease has %s left", queues, first, again, left)
			}
		})
	}
}

// slowClaims is a store whose answer to a claim takes long.
type slowClaims struct{ sluice.Store }

func (s slowClaims) Unwrap() sluice.Store { return s.Store }

func (s slowClaims) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	out, err := s.Store.Claim(ctx, request)
	time.Sleep(8 * time.Second)
	return out, err
}

// TestAJobThatTheStoreAnswersLateHoldsFromThenOn claims from a store that answers when most of the lease is over.
func TestAJobThatTheStoreAnswersLateHoldsFromThenOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		api := httpapi.New(slowClaims{store}, httpapi.Options{NoLogin: true, Logger: slog.New(slog.DiscardHandler)})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		id := must(client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")})).ID
		got := claimFor(t.Context(), t, api, `,"lease":"10s"`)
		left := must(client.Job(t.Context(), id)).LeaseUntil.Sub(must(store.Now(t.Context())))
		if len(got) != 1 || got[0].LeaseSeconds != 10 || left != 10*time.Second {
			t.Errorf("got %+v, and the lease has %s left, want 10 s", got, left)
		}
	})
}
