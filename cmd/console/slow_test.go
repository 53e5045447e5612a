package console_test

import (
	"context"
	"net/http"
	"net/url"
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

// hanging is a store that can stop to answer questions about queues.
type hanging struct {
	sluice.Store
	hangs atomic.Bool
}

func (h *hanging) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	if h.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Store.Queues(ctx, filter)
}

func (h *hanging) Unwrap() sluice.Store { return h.Store }

// TestAPageGivesTheStoreTwoSeconds opens pages while the store hangs. None waits for each of its readings, and a picture that is
// there says from when it is.
func TestAPageGivesTheStoreTwoSeconds(t *testing.T) {
	t.Parallel()
	store := &hanging{Store: memory.New(memory.Options{})}
	s := openOver(t, store, access.Caller{Name: "ann", Role: access.RoleOperator}, console.Options{}, httpapi.Options{})
	s.console.WaitForReadings(2 * time.Second)
	s.enqueue(sluice.NewJob{Queue: "mail"})
	messages := s.watch("/queues?live=1")
	saying(t, messages, `id="queue-mail"`)
	store.hangs.Store(true)
	saying(t, messages, `stale{"at":"`)
	for _, path := range []string{"/", "/queues", "/waves"} {
		text, status := s.page(path)
		if status != http.StatusGatewayTimeout || !strings.Contains(text, "did not answer within 2s, so the reading was stopped") {
			t.Errorf("%s: got %d, want a problem after 2 s", path, status)
		}
	}
	store.hangs.Store(false)
	saying(t, messages, `id="queue-mail"`)
	if text, status := s.do("pause-queue", url.Values{"queue": {"mail"}}, nil); status != http.StatusNoContent {
		t.Errorf("after it: got %d %s, want the act done", status, text)
	}
}
