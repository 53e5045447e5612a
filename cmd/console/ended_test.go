package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestAnOpenPageEndsWithItsToken takes a token away, or changes its rights, while somebody watches a page.
func TestAnOpenPageEndsWithItsToken(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func() (access.Caller, error){
		"revoked": func() (access.Caller, error) { return access.Caller{}, access.ErrUnknown },
		"bounded": func() (access.Caller, error) {
			return access.Caller{Name: "ann", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"sms"}}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var over atomic.Bool
			api := httpapi.New(memory.New(memory.Options{NoStatistics: true}), httpapi.Options{Identify: func(*http.Request) (access.Caller, error) {
				if over.Load() {
					return after()
				}
				return access.Caller{Name: "ann", Role: access.RoleViewer}, nil
			}})
			c, err := console.New(console.Options{API: api})
			if err != nil {
				t.Fatal(err)
			}
			s := &site{Server: httptest.NewServer(c), t: t, console: c}
			t.Cleanup(func() { c.Drain(); s.Close() })
			messages := s.watch("/queues?live=1")
			saying(t, messages, "queues")
			over.Store(true)
			began := time.Now()
			saying(t, messages, "ended")
			if took := time.Since(began); took > 2*access.Kept {
				t.Errorf("the page ended after %s", took)
			}
		})
	}
}

// TestASessionThatEndsConcernsNobodyElse ends ann's session while her page is read. She is sent to sign in, and bob, who has the
// same rights, sees the page.
func TestASessionThatEndsConcernsNobodyElse(t *testing.T) {
	t.Parallel()
	api := httpapi.New(memory.New(memory.Options{NoStatistics: true}), httpapi.Options{Identify: func(r *http.Request) (access.Caller, error) {
		if name := r.Header.Get("Authorization"); name != "ann" || r.URL.Path == httpapi.Root+"/whoami" {
			return access.Caller{Name: name, Role: access.RoleViewer}, nil
		}
		return access.Caller{}, access.ErrUnknown
	}})
	c, err := console.New(console.Options{API: api, SignIn: "/login"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(c)
	t.Cleanup(func() { c.Drain(); s.Close() })
	client := s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, person := range []struct {
		name   string
		status int
		to     string
	}{{"ann", http.StatusSeeOther, "/login?next=%2Fqueues"}, {"bob", http.StatusOK, ""}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/queues", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", person.name)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if to := response.Header.Get("Location"); response.StatusCode != person.status || to != person.to {
			t.Errorf("%s gets %d %q, want %d %q", person.name, response.StatusCode, to, person.status, person.to)
		}
	}
}

// TestAStreamOfAnEndedSessionSaysSo asks for the stream of a page after the session has ended, as a page does that was asleep.
func TestAStreamOfAnEndedSessionSaysSo(t *testing.T) {
	t.Parallel()
	api := httpapi.New(memory.New(memory.Options{NoStatistics: true}), httpapi.Options{Identify: func(*http.Request) (access.Caller, error) {
		return access.Caller{}, access.ErrUnknown
	}})
	c, err := console.New(console.Options{API: api, SignIn: "/login"})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Server: httptest.NewServer(c), t: t, console: c}
	t.Cleanup(func() { c.Drain(); s.Close() })
	if text, status := s.page("/queues?live=1"); status != http.StatusUnauthorized || !strings.HasPrefix(text, "event: ended\n") {
		t.Errorf("the stream answers %d %.200s, want 401 and the event that it has ended", status, text)
	}
}

// TestOthersSeeNothingOfNewRights gives bob more rights while ann watches the same page as he. She sees no more than before.
func TestOthersSeeNothingOfNewRights(t *testing.T) {
	t.Parallel()
	var promoted atomic.Bool
	store := memory.New(memory.Options{NoStatistics: true})
	api := httpapi.New(store, httpapi.Options{Identify: func(r *http.Request) (access.Caller, error) {
		caller := access.Caller{Name: r.Header.Get("Authorization"), Role: access.RoleViewer}
		if caller.Name != "bob" || !promoted.Load() {
			caller.Queues = []string{"sms"}
		}
		return caller, nil
	}})
	c, err := console.New(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Server: httptest.NewServer(c), t: t, console: c, store: store, client: sluice.NewClient(store, sluice.ClientOptions{})}
	t.Cleanup(func() { c.Drain(); s.Close() })
	for _, queue := range []string{"sms", "payroll"} {
		s.enqueue(sluice.NewJob{Queue: queue})
	}
	ann := s.watchAs("ann", "/queues?live=1")
	saying(t, ann, "sms")
	var bobs []<-chan string
	for range 10 { // so that most paintings are his
		bobs = append(bobs, s.watchAs("bob", "/queues?live=1"))
	}
	for _, bob := range bobs {
		saying(t, bob, "sms")
	}
	promoted.Store(true)
	for _, bob := range bobs {
		saying(t, bob, "ended")
	}
	for len(ann) > 0 {
		if message := <-ann; strings.Contains(message, "payroll") {
			t.Fatal("ann sees a queue that only bob may see")
		}
	}
}
