package console_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

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
