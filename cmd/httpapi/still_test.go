package httpapi_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// written is what a request that lasts has answered so far.
type written struct {
	*httptest.ResponseRecorder
	logText
}

func (w *written) Write(text []byte) (int, error) { return w.logText.Write(text) }

// lasting is a server, and the secret of a token that ends.
type lasting struct {
	*testing.T
	store  sluice.Store
	api    *httpapi.API
	secret string
}

// withLasting runs a test with a token of a role. Its clock passes at once.
func withLasting(t *testing.T, role access.Role, test func(l lasting)) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		_, secret, err := access.Create(t.Context(), store, access.Token{Name: "shop", Role: role}, sluice.Act{By: "test"})
		if err != nil {
			t.Fatal(err)
		}
		test(lasting{t, store, httpapi.New(store, httpapi.Options{Logger: slog.New(slog.DiscardHandler)}), secret})
		time.Sleep(time.Hour) // what the API keeps for a client that comes again is forgotten
	})
}

// begin sends a request that lasts.
func (l lasting) begin(method, path, kind string, body io.Reader) (w *written, ended chan struct{}) {
	ctx, leave := context.WithCancel(l.Context())
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1"+httpapi.Root+path, body)
	r.Header.Set("Authorization", "Bearer "+l.secret)
	r.Header.Set("Content-Type", kind)
	w, ended = &written{ResponseRecorder: httptest.NewRecorder()}, make(chan struct{})
	go func() {
		defer close(ended)
		l.api.ServeHTTP(w, r)
	}()
	l.Cleanup(leave)
	time.AfterFunc(10*time.Minute, leave)
	return w, ended
}

// revoke revokes the token. The server forgets it.
func (l lasting) revoke() {
	l.Helper()
	time.Sleep(time.Second)
	if err := access.Revoke(l.Context(), l.store, "shop", sluice.Act{By: "test"}); err != nil {
		l.Fatal(err)
	}
	time.Sleep(access.Kept)
}

// enqueue stores a job.
func (l lasting) enqueue() sluice.ID {
	l.Helper()
	receipt, err := sluice.NewClient(l.store, sluice.ClientOptions{}).Enqueue(l.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`)})
	if err != nil {
		l.Fatal(err)
	}
	return receipt.ID
}

func TestAStreamOfARevokedTokenEnds(t *testing.T) {
	t.Parallel()
	withLasting(t, access.RoleViewer, func(l lasting) {
		w, ended := l.begin("GET", "/stream?topics=audit", "", nil)
		l.revoke()
		before := w.String()
		_ = l.enqueue()
		time.Sleep(2 * access.Kept)
		select {
		case <-ended:
		default:
			t.Fatal("the stream goes on")
		}
		if told := strings.TrimPrefix(w.String(), before); strings.Contains(told, "event: audit") || !strings.Contains(w.String(), "event: end\ndata: {\"reason\":\"the token is not known") {
			t.Errorf("after the token has ended, it says %s", told)
		}
	})
}

func TestAStreamOfJobsOfARevokedTokenStoresNoMore(t *testing.T) {
	t.Parallel()
	withLasting(t, access.RoleProducer, func(l lasting) {
		body, lines := io.Pipe()
		w, ended := l.begin("POST", "/jobs?answers=all", "application/x-ndjson", body)
		must(io.WriteString(lines, aLine))
		time.Sleep(time.Second)
		l.revoke()
		must(io.WriteString(lines, aLine))
		time.Sleep(time.Second)
		_ = lines.Close()
		<-ended
		if text := w.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, `{"line":1,"id"`) || !strings.Contains(text, `"code":"unauthorized"`) {
			t.Errorf("it answers %s, want one job and a refusal", text)
		}
	})
}

func TestAWaitOfARevokedTokenGetsNothing(t *testing.T) {
	t.Parallel()
	withLasting(t, access.RoleWorker, func(l lasting) {
		id := l.enqueue()
		claimed, err := l.store.Claim(l.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 1, Holder: "h", Lease: time.Hour, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != 1 {
			t.Fatal(claimed, err)
		}
		end, awaited := l.begin("GET", "/jobs/"+id.String()+"/end?wait=60s", "", nil)
		claim, over := l.begin("POST", "/work/claim", "application/json", strings.NewReader(`{"worker":"h:1:a","queues":["mail"],"wait":"60s"}`))
		l.revoke()
		other := l.enqueue()
		if _, err := l.store.Settle(l.Context(), []sluice.Settlement{{ID: id, Token: claimed.Jobs[0].Token, Event: sluice.EventComplete, Result: []byte(`"secret"`)}}); err != nil {
			t.Fatal(err)
		}
		<-awaited
		<-over
		if job, err := l.store.Job(l.Context(), other); err != nil || job.State != sluice.StateQueued || end.Code != 401 || claim.Code != 401 || strings.Contains(end.String(), "secret") {
			t.Errorf("the job is %s, %v, and the waits got %d %s and %d %s, want 401", job.State, err, end.Code, end, claim.Code, claim)
		}
	})
}

func TestAStreamEndsWhenItsTokenGetsOtherRights(t *testing.T) {
	t.Parallel()
	withLasting(t, access.RoleViewer, func(l lasting) {
		var bounds atomic.Pointer[access.Bounds]
		bounds.Store(new(access.Bounds))
		l.api = httpapi.New(l.store, httpapi.Options{Logger: slog.New(slog.DiscardHandler), Identify: func(*http.Request) (access.Caller, error) {
			return access.Caller{Name: "ada", Role: access.RoleViewer, Bounds: *bounds.Load()}, nil
		}})
		w, ended := l.begin("GET", "/stream?topics=audit", "", nil)
		time.Sleep(3 * access.Kept)
		if strings.Contains(w.String(), "event: end") {
			t.Fatalf("it ended before: %s", w)
		}
		bounds.Store(&access.Bounds{Queues: []string{"mail"}})
		time.Sleep(2 * access.Kept)
		select {
		case <-ended:
		default:
			t.Fatal("the stream goes on")
		}
		if !strings.Contains(w.String(), "event: end\ndata: {\"reason\":\"the role or the bounds") {
			t.Errorf("it says %s", w)
		}
	})
}
