package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/worker"
)

// reported counts the calls that store reports. It refuses reports while refuse is set.
type reported struct {
	sluice.Store
	mu      sync.Mutex
	calls   int
	reports []progress.Report
	refuse  bool
}

// Unwrap returns the decorated store.
func (r *reported) Unwrap() sluice.Store { return r.Store }

func (r *reported) SaveProgress(ctx context.Context, reports []progress.Report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls++; r.refuse {
		return errors.New("no room")
	}
	r.reports = append(r.reports, reports...)
	return progress.Given(r.Store).SaveProgress(ctx, reports)
}

func (r *reported) Progress(ctx context.Context, ids []sluice.ID) ([]progress.Report, error) {
	return progress.Given(r.Store).Progress(ctx, ids)
}

// TestOneStatementASecondStoresTheReportsOfAllJobs runs 200 jobs that report 100 times a second each.
func TestOneStatementASecondStoresTheReportsOfAllJobs(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &reported{Store: s.store}
		s.use(store)
		s.run(worker.Options{Slots: 200}, func(_ context.Context, job *worker.Job[payment]) error {
			for n := range 1000 {
				job.Progress(float64(n)/1000, "step")
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		ids := s.addMany(200)
		time.Sleep(5500 * time.Millisecond)
		synctest.Wait()
		found, err := progress.Of(t.Context(), s.store, ids...)
		if err != nil || len(found) != 200 {
			t.Fatalf("%d reports, %v", len(found), err)
		}
		for id, r := range found {
			if r.Fraction < 0.4 || r.Message != "step" {
				t.Errorf("job %s: %+v after 5.5 s of 10 s", id, r)
			}
		}
		store.mu.Lock()
		calls, reports := store.calls, len(store.reports)
		store.mu.Unlock()
		if calls < 4 || calls > 6 || reports > 6*200 {
			t.Errorf("%d statements with %d reports in 5.5 s", calls, reports)
		}
		s.becomes(ids[0], sluice.StateCompleted)
		_ = s.end()
	})
}

func TestJobsThatDoNotReportCostNoStatement(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &reported{Store: s.store}
		s.use(store)
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error { time.Sleep(5 * time.Second); return nil })
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		_ = s.end()
		if store.calls != 0 {
			t.Errorf("%d statements", store.calls)
		}
	})
}

func TestReportThatCouldNotBeStoredIsStoredLater(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &reported{Store: s.store, refuse: true}
		s.use(store)
		var log bytes.Buffer
		s.worker = worker.New(s.store, worker.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		worker.Handle(s.worker, payments, func(_ context.Context, job *worker.Job[payment]) error {
			job.Progress(2, "all")
			time.Sleep(time.Minute)
			return nil
		}, worker.QueueOptions{})
		s.begin()
		id := s.add(sluice.EnqueueOptions{})
		time.Sleep(3 * time.Second)
		store.mu.Lock()
		store.refuse = false
		store.mu.Unlock()
		time.Sleep(3 * time.Second)
		if found, err := progress.Of(t.Context(), s.store, id); err != nil || found[id].String() != "100 %, all" {
			t.Errorf("the progress is %+v, %v, want `100 %%, all`", found, err)
		}
		s.becomes(id, sluice.StateCompleted)
		_ = s.end()
		if !strings.Contains(log.String(), "progress not saved") {
			t.Errorf("the log is %s", log.String())
		}
	})
}

// TestAReportIsSeenWithinASecond makes a job report at odd times, also right after a report was stored. Other events
// wake the job's worker meanwhile.
func TestAReportIsSeenWithinASecond(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &reported{Store: s.store}
		s.use(store)
		steps := []time.Duration{0, 10, 990, 1000, 1010, 1500, 3000, 3400, 3990, 4001, 5400, 8123}
		s.run(worker.Options{}, func(_ context.Context, job *worker.Job[payment]) error {
			begun := time.Now()
			for n, at := range steps {
				time.Sleep(time.Until(begun.Add(at * time.Millisecond)))
				job.Progress(float64(n)/100, time.Now().Format(time.RFC3339Nano))
			}
			time.Sleep(2 * time.Second)
			return nil
		})
		id := s.add(sluice.EnqueueOptions{})
		time.Sleep(300 * time.Millisecond) // so that callers read between the rounds of the worker
		var late time.Duration
		var last string
		_, err := await.New(s.store).Follow(context.Background(), id, func(r progress.Report) {
			at, err := time.Parse(time.RFC3339Nano, r.Message)
			if err != nil {
				t.Fatal(err)
			}
			last, late = r.Message, max(late, time.Since(at))
		})
		if err != nil || late > 1100*time.Millisecond {
			t.Errorf("a report was seen after %s, %v", late, err)
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		if got := store.reports[len(store.reports)-1].Message; got != last {
			t.Errorf("the last report is %s, seen was %s", got, last)
		}
		if store.calls > 9 {
			t.Errorf("%d statements in 8.1 s", store.calls)
		}
		_ = s.end()
	})
}
