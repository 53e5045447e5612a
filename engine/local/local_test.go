package local_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/enginetest"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/worker"
)

var quiet = slog.New(slog.DiscardHandler)

// payloadLimit is the payload_limit of the queue that holds the runs. Sluice uses some of it for data of its own.
const payloadLimit = 256 << 10

func settings() sluice.Settings {
	s := local.DefaultSettings()
	s.PayloadLimit = payloadLimit
	return s
}

func TestLocalObeysTheRules(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		gone := closed(t, memory.New(memory.Options{}))
		enginetest.Run(t, func(t *testing.T) enginetest.Bench { return open(t, memory.New(memory.Options{}), gone) })
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		gone := closed(t, inFile(t))
		enginetest.Run(t, func(t *testing.T) enginetest.Bench { return open(t, inFile(t), gone) })
	})
}

func closed(t *testing.T, store sluice.Store) sluice.Store {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return store
}

func inFile(t *testing.T) sluice.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	litetest.MakeFile(t, path)
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// open makes two engines on one store, as two processes would: one for dispatchers, and one that executes runs.
func open(t *testing.T, store, gone sluice.Store) enginetest.Bench {
	t.Helper()
	diary := new(enginetest.Diary)
	execute(t, store, func(ctx context.Context, run *local.Run[enginetest.Script]) (any, error) {
		return diary.Obey(ctx, run.Ref, run.Execution, run.Payload)
	})
	return enginetest.Bench{
		Engine: local.New(store, local.Options{Settings: settings(), Worker: worker.Options{Logger: quiet}}),
		Target: target, Diary: diary,
		Gone:       local.New(gone, local.Options{Worker: worker.Options{Logger: quiet}}),
		Nowhere:    engine.Target{Queue: "rules", Type: "no such type"},
		MaxPayload: payloadLimit, MaxRef: local.MaxRefBytes, Retention: 7 * 24 * time.Hour,
	}
}

var target = engine.Target{Queue: "rules", Type: "obey"}

// execute makes another engine on the store execute runs until the test ends or calls stop.
func execute[T any](t *testing.T, store sluice.Store, do local.Func[T]) (stop func()) {
	t.Helper()
	engine := local.New(store, local.Options{
		Settings: settings(), Worker: worker.Options{Slots: 40, Drain: time.Millisecond, Abandon: time.Second, Logger: quiet},
	})
	local.Handle(engine, target.Type, do, worker.QueueOptions{})
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		end()
		if err := <-ended; err != nil && !errors.Is(err, worker.ErrDrainTimeout) { // Run cuts off runs that wait
			t.Errorf("the engine ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
