package monitor_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestMonitorTellsMetricsAndHealth(t *testing.T) {
	t.Parallel()
	m, err := monitor.New(memory.New(memory.Options{}), monitor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if _, err := sluice.NewClient(m.Store, sluice.ClientOptions{}).Enqueue(ctx, sluice.NewJob{Queue: "mail", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	for path, want := range map[string]string{"/healthz": "live", "/readyz": "store", "/metrics": `sluice_moves_total{event="enqueue",queue="mail",reason=""} 1`} {
		if code, text := get(m, path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s answers %d without %s:\n%s", path, code, want, text)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, text := get(m, "/metrics"); strings.Contains(text, `sluice_jobs{`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the metrics do not tell how the store is")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if code, _ := get(m, "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d although it ends", code)
	}
	if err := m.Serve(t.Context(), "0.0.0.0:0"); err == nil {
		t.Error("it listens to all")
	}
}

func get(handler http.Handler, path string) (code int, text string) {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}
