package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/service"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// temporal returns the address of a Temporal server for one test alone, because services that share a server take each
// other's tasks. If no server can be built, it returns the one that SLUICE_TEST_TEMPORAL names.
func temporal(t *testing.T) string {
	t.Helper()
	server, err := temporaltest.Start(t.Context(), temporaltest.Options{})
	if named := os.Getenv(temporaltest.Env); err != nil && named != "" {
		return named
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.Address
}

// site is the service at work.
type site struct {
	*testing.T
	url string
}

func open(t *testing.T, bySchedule bool) *site {
	t.Helper()
	s, err := service.Open(t.Context(), service.Options{
		DB: filepath.Join(t.TempDir(), "payments.db"), Temporal: temporal(t), Namespace: "default", BySchedule: bySchedule,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return &site{t, web.URL}
}

// ask sends a request, whose answer must have the status code, and decodes the answer.
func (s *site) ask(method, path, body string, code int, into any) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	if answer.StatusCode != code {
		s.Fatalf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		s.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}

// await waits until an item has a status and its job has completed.
func (s *site) await(path, status string) {
	s.Helper()
	for {
		var item struct {
			Status string
			Job    sluice.Job
		}
		s.ask("GET", path, "", http.StatusOK, &item)
		if item.Status == status && item.Job.State == sluice.StateCompleted {
			return
		}
		select {
		case <-s.Context().Done():
			s.Fatalf("%s has status %s, and its job is %s", path, item.Status, item.Job.State)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func payment(id string, dueAt time.Time) string {
	return fmt.Sprintf(`{"id":%q,"payer":"ada","payee":"bob","cents":1200,"currency":"EUR","due_at":%q}`, id, dueAt.Format(time.RFC3339Nano))
}

func TestServiceTakesInAndExecutesWhatBothDomainsGet(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a Temporal server")
	}
	t.Parallel()
	for name, bySchedule := range map[string]bool{"Sluice dispatches": false, "a schedule begins the cycles": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, bySchedule)
			due := time.Now().Add(time.Second)
			var result domain.Result
			s.ask("POST", "/payments", payment("one", due), http.StatusOK, &result)
			if result.Scheduled != 1 {
				t.Errorf("one: %+v", result)
			}
			result = domain.Result{}
			s.ask("POST", "/payments", "["+payment("two", due)+","+payment("one", due)+`,{"id":"bad"}]`, http.StatusOK, &result)
			if result.Scheduled != 1 || result.Duplicates != 1 || len(result.Refused) != 1 || result.Refused[0].Line != 3 {
				t.Errorf("many: %+v", result)
			}
			result = domain.Result{}
			s.ask("POST", "/payments/import", payment("three", due)+"\nnonsense\n"+payment("four", due.Add(time.Hour))+"\n", http.StatusOK, &result)
			if result.Scheduled != 2 || len(result.Refused) != 1 || result.Refused[0].Line != 2 {
				t.Errorf("import: %+v", result)
			}
			result = domain.Result{}
			s.ask("POST", "/invoices", fmt.Sprintf(`{"id":"i1","customer":"ada","cents":5,"due_at":%q}`, due.Format(time.RFC3339Nano)), http.StatusOK, &result)
			if result.Scheduled != 1 {
				t.Errorf("invoice: %+v", result)
			}
			for _, id := range []string{"one", "two", "three"} {
				s.await("/payments/"+id, "PROCESSING")
			}
			s.await("/invoices/i1", "SENT")
			apptest.Answers(t, s.url, map[string]string{"/metrics": `sluice_moves_total{event="enqueue",queue="payment",reason=""} 4`})
			var waits struct{ Status string }
			if s.ask("GET", "/payments/four", "", http.StatusOK, &waits); waits.Status != "SCHEDULED" {
				t.Errorf("the one that is due in an hour has status %s", waits.Status)
			}
		})
	}
}

func TestServiceSaysWhatIsWrongWithARequest(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a Temporal server")
	}
	t.Parallel()
	s := open(t, false)
	for _, c := range []struct {
		method, path, body string
		code               int
	}{
		{"GET", "/payments/none", "", http.StatusNotFound},
		{"POST", "/payments", `[{"id":`, http.StatusBadRequest},
		{"POST", "/payments", `nonsense`, http.StatusUnprocessableEntity},
		{"POST", "/payments/import", strings.Repeat("x", 2<<20), http.StatusBadRequest},
		{"GET", "/health", "", http.StatusOK},
	} {
		var any map[string]any
		s.ask(c.method, c.path, c.body, c.code, &any)
	}
	apptest.Answers(t, s.url, map[string]string{"/healthz": "live", "/readyz": "breaker", "/metrics": "sluice_moves_total{"})
}
