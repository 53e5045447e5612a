//go:build unix

package trace_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/trace"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/worker"
)

// BenchmarkWork enqueues jobs in batches of 500, and handles them with a handler that does nothing. It runs without
// observers, with an idle observer, and with traces of some or all jobs. A receiver in the same process takes the
// traces. It reports CPU time per job.
func BenchmarkWork(b *testing.B) {
	for _, store := range []struct {
		name string
		open func(b *testing.B) sluice.Store
	}{
		{"memory", func(*testing.B) sluice.Store { return memory.New(memory.Options{}) }},
		{"sqlite", func(b *testing.B) sluice.Store {
			s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			return s
		}},
	} {
		for _, traced := range []struct {
			name  string
			store func(b *testing.B, inner sluice.Store) sluice.Store
		}{
			{"plain", func(_ *testing.B, inner sluice.Store) sluice.Store { return inner }},
			{"observed", func(_ *testing.B, inner sluice.Store) sluice.Store {
				return observe.Store(inner, counter(func(*observe.Call) {}))
			}},
			{"traced-1%", sampled(0.01)},
			{"traced-100%", sampled(1)},
		} {
			b.Run(store.name+"/"+traced.name, func(b *testing.B) { work(b, traced.store(b, store.open(b))) })
		}
	}
}

func sampled(share float64) func(b *testing.B, inner sluice.Store) sluice.Store {
	return func(b *testing.B, inner sluice.Store) sluice.Store {
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		b.Cleanup(receiver.Close)
		exporter, err := otlptracehttp.New(b.Context(), otlptracehttp.WithEndpointURL(receiver.URL))
		if err != nil {
			b.Fatal(err)
		}
		provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share))))
		b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
		return observe.Store(inner, trace.New(trace.Options{TracerProvider: provider, Database: "sqlite"}))
	}
}

func work(b *testing.B, store sluice.Store) {
	client := sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})
	if _, err := client.EnsureQueue(b.Context(), "mail", sluice.DefaultSettings(), sluice.Act{By: "bench"}); err != nil {
		b.Fatal(err)
	}
	var handled atomic.Int64
	done := make(chan struct{})
	works := worker.New(store, worker.Options{Slots: 50, Logger: quiet})
	worker.Handle(works, sluice.QueueOf[any]("mail"), func(context.Context, *worker.Job[any]) error {
		if handled.Add(1) == int64(b.N) {
			close(done)
		}
		return nil
	}, worker.QueueOptions{})
	before := cpu()
	b.ResetTimer()
	for left := b.N; left > 0; left -= 500 {
		jobs := make([]sluice.NewJob, min(left, 500))
		for i := range jobs {
			jobs[i] = sluice.NewJob{Queue: "mail", Payload: []byte(`{"to":"ada"}`)}
		}
		if _, err := client.EnqueueMany(b.Context(), jobs); err != nil {
			b.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- works.Run(ctx) }()
	<-done
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/job")
}

// cpu returns the CPU time that this process has used.
func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
