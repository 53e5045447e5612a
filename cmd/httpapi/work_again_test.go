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
	r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost"+httpapi.Root+"/work/claim", strings.NewReader(`{"worker":"h:1:a","queues":["mail"],"token":"0123456789abcdef"`+more+`}`))
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
