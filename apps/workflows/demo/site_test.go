package demo

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/apps/workflows/service"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// site is the whole service for one workspace, acme, with a Temporal server.
type site struct {
	*testing.T
	db       *records.Database
	temporal client.Client
	// stop ends the service and waits until it has ended.
	stop func()
}

// newSite runs the service. watch, which may be nil, returns a monitor of the database. The workspace has the
// definition wait, whose executions wait for the given time.
func newSite(t *testing.T, wait string, watch func(d *records.Database) *monitor.Monitor) *site {
	t.Helper()
	d, err := records.Open(t.Context(), filepath.Join(t.TempDir(), "workflows.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	s := &site{T: t, db: d}
	s.temporal, err = service.Dial(temporaltest.Address(t), logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.temporal.Close)
	run := service.Service{Database: d, Temporal: s.temporal, TaskQueue: "test-" + sluice.NewID().String(), Logger: logger}
	if watch != nil {
		run.Monitor = watch(d)
	}
	s.must(service.Prepare(t.Context(), d, run.TaskQueue))
	s.must(d.SaveWorkspace(t.Context(), records.Workspace{ID: "acme", Name: "Acme", Plan: "PRO"}, "test"))
	s.must(d.SaveDefinition(t.Context(), "acme", records.Definition{ID: "wait", Name: "Wait"}))
	s.must(d.SaveVersion(t.Context(), "acme", "wait", 1, []byte(`{"start":"wait","nodes":[{"id":"wait","kind":"delay","for":"`+wait+`"}]}`)))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
