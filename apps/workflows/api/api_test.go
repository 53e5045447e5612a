package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/workflows/api"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/tenancy"
)

// serve returns a new database, and a function that calls its API.
func serve(t *testing.T) (*records.Database, func(method, path, body string) (int, map[string]any)) {
	t.Helper()
	return serveOn(t, filepath.Join(t.TempDir(), "workflows.db"))
}

func serveOn(t *testing.T, address string) (*records.Database, func(method, path, body string) (int, map[string]any)) {
	t.Helper()
	d, err := records.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	act := sluice.Act{By: "test"}
	if _, err := d.Client.EnsureQueue(t.Context(), records.Queue, sluice.DefaultSettings(), act); err != nil {
		t.Fatal(err)
	}
	if _, err := tenancy.AddTier(t.Context(), d.Store, "FREE", act); err != nil {
		t.Fatal(err)
	}
	handler := (&api.API{Database: d, Logger: slog.New(slog.DiscardHandler)}).Handler()
	return d, func(method, path, body string) (int, map[string]any) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		var answer map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &answer) // fails for lists and for empty answers, which the tests do not read
		return w.Code, answer
	}
}

func TestMain(m *testing.M) { pgtest.Main(m) }

const simple = `{"start":"a","nodes":[{"id":"a","kind":"set","variable":"x","value":1}]}`

func TestCallsAndTheirAnswers(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func() string{
		"sqlite":   func() string { return filepath.Join(t.TempDir(), "workflows.db") },
		"postgres": func() string { return pgtest.NewDatabase(t) },
	} {
		t.Run(name, func(t *testing.T) {
			_, call := serveOn(t, address())
			checkAnswers(t, call)
		})
	}
}

func checkAnswers(t *testing.T, call func(method, path, body string) (int, map[string]any)) {
	t.Helper()
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"PUT", "/workspaces/acme", `{"name":"Acme","plan":"GOLD"}`, http.StatusBadRequest},
		{"PUT", "/workspaces/acme", `{"name":"Acme","plan":"FREE"}`, http.StatusOK},
		{"PUT", "/workspaces/acme", `{"nome":"Acme"}`, http.StatusBadRequest},
		{"PUT", "/workspaces/none/definitions/order", `{"name":"Order"}`, http.StatusNotFound},
		{"PUT", "/workspaces/acme/definitions/order", `{"name":"Order"}`, http.StatusOK},
		{"PUT", "/workspaces/acme/definitions/order/versions/one", simple, http.StatusBadRequest},
		{"PUT", "/workspaces/acme/definitions/order/versions/1", `{"start":"b"}`, http.StatusBadRequest},
		{"PUT", "/workspaces/acme/definitions/order/versions/1", simple, http.StatusOK},
		{"PUT", "/workspaces/acme/definitions/order/versions/1", simple, http.StatusOK},
		{"PUT", "/workspaces/acme/definitions/order/versions/1", strings.Replace(simple, "1", "2", 1), http.StatusConflict},
		{"POST", "/workspaces/acme/executions", `{"definition":"unknown"}`, http.StatusNotFound},
		{"POST", "/workspaces/acme/executions", `{"definition":"order","priority":-1}`, http.StatusBadRequest},
		{"POST", "/workspaces/acme/executions", `{"definition":"order","id":"` + id + `"}`, http.StatusAccepted},
		{"POST", "/workspaces/acme/executions", `{"definition":"order","id":"` + id + `"}`, http.StatusOK},
		{"POST", "/workspaces/acme/executions", `{"definition":"` + strings.Repeat("x", 2<<20) + `"}`, http.StatusRequestEntityTooLarge},
		{"GET", "/workspaces/acme/executions", ``, http.StatusOK},
		{"GET", "/workspaces/none/executions", ``, http.StatusNotFound},
		{"GET", "/workspaces/acme/executions/" + id, ``, http.StatusOK},
		{"GET", "/workspaces/acme/executions/" + id + "/why", ``, http.StatusOK},
		{"GET", "/workspaces/none/executions/" + id + "/why", ``, http.StatusNotFound},
		{"GET", "/workspaces/acme/executions/7", ``, http.StatusBadRequest},
		{"GET", "/workspaces/a%00b/executions", ``, http.StatusBadRequest},
		{"GET", "/workspaces/a%ffb/executions/" + id, ``, http.StatusBadRequest},
		{"GET", "/workspaces/a%00b/executions/" + id + "/why", ``, http.StatusBadRequest},
		{"PUT", "/workspaces/acme", `{"name":"A\u0000","plan":"FREE"}`, http.StatusBadRequest},
		{"PUT", "/workspaces/acme/definitions/order", `{"name":"A\u0000"}`, http.StatusBadRequest},
		{"POST", "/workspaces/a%00b/executions", `{"definition":"order"}`, http.StatusBadRequest},
		{"POST", "/workspaces/acme/executions", `{"definition":"a\u0000b"}`, http.StatusBadRequest},
		{"DELETE", "/workspaces/a%00b", ``, http.StatusBadRequest},
		{"DELETE", "/workspaces/acme/definitions/order/versions/3000000000", ``, http.StatusBadRequest},
		{"PUT", "/workspaces/acme/definitions/order/versions/3000000000", simple, http.StatusBadRequest},
		{"POST", "/workspaces/acme/executions", `{"definition":"order","version":3000000000}`, http.StatusBadRequest},
		{"DELETE", "/workspaces/a%00b/definitions/order", ``, http.StatusBadRequest},
		{"DELETE", "/workspaces/acme/definitions/o%00/versions/1", ``, http.StatusBadRequest},
		{"DELETE", "/workspaces/acme/definitions/order/versions/1", ``, http.StatusNoContent},
		{"DELETE", "/workspaces/acme/definitions/order", ``, http.StatusNoContent},
		{"DELETE", "/workspaces/acme", ``, http.StatusNoContent},
		{"GET", "/workspaces/acme/executions/" + id, ``, http.StatusOK},
	} {
		if got, answer := call(c.method, c.path, c.body); got != c.want {
			t.Errorf("%s %s %.60s: got %d, %v; want %d", c.method, c.path, c.body, got, answer, c.want)
		}
	}
}

func TestAnExecutionShowsItsJob(t *testing.T) {
	t.Parallel()
	d, call := serve(t)
	call("PUT", "/workspaces/acme", `{"name":"Acme","plan":"FREE"}`)
	call("PUT", "/workspaces/acme/definitions/order", `{"name":"Order"}`)
	call("PUT", "/workspaces/acme/definitions/order/versions/1", simple)
	_, created := call("POST", "/workspaces/acme/executions", `{"definition":"order"}`)
	path := "/workspaces/acme/executions/" + created["id"].(string)
	_, answer := call("GET", path, "")
	if job, _ := answer["job"].(map[string]any); answer["state"] != "waiting" || job["state"] != "queued" {
		t.Errorf("got %v", answer)
	}
	id, err := sluice.ParseID(created["id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Client.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, answer = call("GET", path, ""); answer["state"] != "failed" || !strings.HasPrefix(answer["error"].(string), "cancelled") {
		t.Errorf("got %v", answer)
	}
	list, err := d.Executions(t.Context(), "acme", 10)
	if err != nil || len(list) != 1 || list[0].State != records.Failed || list[0].EndedAt.IsZero() {
		t.Errorf("the list says %+v, %v", list, err)
	}
	if err := d.Client.Requeue(t.Context(), []sluice.ID{id}, sluice.Act{By: "test", Reason: "again"}); err != nil {
		t.Fatal(err)
	}
	if _, answer = call("GET", path, ""); answer["state"] != "waiting" || answer["error"] != nil || answer["ended_at"] != nil {
		t.Errorf("after a requeue: %v", answer)
	}
}

func TestMonitorIsAnswered(t *testing.T) {
	t.Parallel()
	d, _ := serve(t)
	m, err := d.Monitor(monitor.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Client.Enqueue(t.Context(), sluice.NewJob{Queue: records.Queue, Payload: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer((&api.API{Database: d, Logger: slog.New(slog.DiscardHandler), Monitor: m}).Handler())
	defer server.Close()
	apptest.Answers(t, server.URL, map[string]string{
		"/healthz": "live", "/readyz": "store", "/metrics": `sluice_moves_total{event="enqueue",queue="executions"`,
	})
}
