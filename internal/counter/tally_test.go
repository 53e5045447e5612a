package counter_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
)

// forgetful is a store that loses its answers to AddStats while lost is set. If came is set, it stores the counts all
// the same.
type forgetful struct {
	sluice.Store
	lost, came atomic.Bool
}

// Unwrap returns the decorated store.
func (f *forgetful) Unwrap() sluice.Store { return f.Store }

func (f *forgetful) AddStats(ctx context.Context, holder string, stats []stat.Stat) error {
	if f.lost.Load() && !f.came.Load() {
		return sluice.ErrUnavailable
	}
	err := stat.Given(f.Store).AddStats(ctx, holder, stats)
	if f.lost.Load() {
		return sluice.ErrUnavailable
	}
	return err
}

// counted is a store in a bubble of fake time, and a tally that counts on it. The store's clock is a day ahead.
type counted struct {
	*testing.T
	store   *forgetful
	watched sluice.Store
	tally   *counter.Tally
	log     bytes.Buffer
}

// watched is a store that counts with a tally, as the real stores do.
type watched struct {
	sluice.Store
	tally *counter.Tally
}

// Unwrap returns the decorated store.
func (w *watched) Unwrap() sluice.Store { return w.Store }

func (w *watched) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	receipts, err := w.Store.Enqueue(ctx, jobs)
	w.tally.Enqueued(jobs, receipts)
	return receipts, err
}

func (w *watched) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	out, err := w.Store.Claim(ctx, request)
	w.tally.Claimed(out.Jobs)
	return out, err
}

func (w *watched) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	errs, err := w.Store.Settle(ctx, settlements)
	w.tally.Settled(settlements, errs)
	return errs, err
}

func (w *watched) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	out, err := w.Store.Recover(ctx, queue, limit, by)
	w.tally.Recovered(queue, out)
	return out, err
}

func inCount(t *testing.T, test func(c *counted)) {
	t.Parallel()
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const skew = 24 * time.Hour
		inner := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(skew) }, NoStatistics: true})
		c := &counted{T: t, store: &forgetful{Store: inner}}
		q := sluice.Queue{Name: "payments", Settings: sluice.DefaultSettings()}
		q.Settings.MaxRecoveries = 2
		if _, err := c.store.SaveQueue(t.Context(), q, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
		c.tally = counter.New(c.store, counter.Options{Logger: slog.New(slog.NewTextHandler(&c.log, nil))})
		c.watched = &watched{c.store, c.tally}
		defer c.tally.Close()
		test(c)
	})
}

// sleep lets time pass, and waits until all work that is due by then is done.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *counted) enqueue(n int) {
	r.Helper()
	client := sluice.NewClient(r.watched, sluice.ClientOptions{})
	for range n {
		if _, err := client.Enqueue(r.Context(), sluice.NewJob{Queue: "payments", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}}); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *counted) claim(n int) []*sluice.Claim {
	r.Helper()
	claimed, err := r.watched.Claim(r.Context(), sluice.ClaimRequest{Queue: "payments", Limit: n, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != n {
		r.Fatalf("claimed %d, %v", len(claimed.Jobs), err)
	}
	return claimed.Jobs
}

func (r *counted) settle(c *sluice.Claim, event sluice.Event) {
	r.Helper()
	s := sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: event, Claim: c}
	if _, err := r.watched.Settle(r.Context(), []sluice.Settlement{s}); err != nil {
		r.Fatal(err)
	}
}

func (r *counted) recover() {
	r.Helper()
	if _, err := r.watched.Recover(r.Context(), "payments", 100, "upkeep"); err != nil {
		r.Fatal(err)
	}
}

// summary returns the summary of the queue, or of a tenant if one is given.
func (r *counted) summary(tenant string) stat.Summary {
	r.Helper()
	sum := func() (stat.Summary, error) { return stat.Of(r.Context(), r.store, "payments", 0) }
	if tenant != "" {
		sum = func() (stat.Summary, error) { return stat.OfTenant(r.Context(), r.store, "payments", tenant, 0) }
	}
	s, err := sum()
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func TestCountsAreOfTheirTimeAfterTheClockWasSetBack(t *testing.T) {
	for name, own := range map[string]bool{"by a tally that stores": false, "by a store that takes its counts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var ahead atomic.Int64
				ahead.Store(int64(2 * time.Hour))
				store := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, NoStatistics: !own})
				var enqueues sluice.Store = store
				if !own {
					tally := counter.New(store, counter.Options{})
					defer tally.Close()
					enqueues = &watched{store, tally}
				}
				work := func() {
					for range 12 {
						client := sluice.NewClient(enqueues, sluice.ClientOptions{})
						if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "payments", Payload: []byte("1")}); err != nil {
							t.Fatal(err)
						}
						sleep(10 * time.Second)
						if _, err := stat.Of(t.Context(), store, "payments", 0); err != nil {
							t.Fatal(err)
						}
					}
				}
				work()
				ahead.Store(0)
				work()
				sleep(20 * time.Second)
				got, err := stat.Of(t.Context(), store, "payments", 0)
				if err != nil || got.Counts.Enqueued < 11 || len(got.Slots) < 2 {
					t.Errorf("%d jobs in %d minutes of the hour before, want 12 in 2 or more: %v", got.Counts.Enqueued, len(got.Slots), err)
				}
			})
		})
	}
}

func TestWhatAProcessDoesIsRecorded(t *testing.T) {
	inCount(t, func(r *counted) {
		r.enqueue(5)
		sleep(3 * time.Second)
		claims := r.claim(4)
		sleep(2 * time.Second)
		r.settle(claims[0], sluice.EventComplete)
		r.settle(claims[1], sluice.EventRetry)
		r.settle(claims[2], sluice.EventBury)
		sleep(time.Minute)
		r.recover()
		r.claim(3)
		sleep(70 * time.Second)
		r.recover() // recovers two jobs for the first time, and one for the second time, which buries it
		sleep(20 * time.Second)
		got := r.summary("")
		want := stat.Counts{Enqueued: 5, Claimed: 7, Completed: 1, Failed: 2, Dead: 2, Recovered: 4}
		if got.Counts != want {
			t.Errorf("%+v, want %+v", got.Counts, want)
		}
		if got.SuccessRate != 1.0/3 || got.LeaseExpiryRate != 4.0/7 {
			t.Errorf("success rate %v, lease expiry rate %v", got.SuccessRate, got.LeaseExpiryRate)
		}
		if off := (got.Run.P95 - 2*time.Second).Abs(); off > 100*time.Millisecond {
			t.Errorf("p95 of run is %s, want 2s", got.Run.P95)
		}
		if off := (got.Total.P95 - 5*time.Second).Abs(); off > 250*time.Millisecond {
			t.Errorf("p95 of total is %s, want 5s", got.Total.P95)
		}
		tenant := r.summary("acme").Counts
		want.Recovered, want.Dead = 0, 1 // statistics of tenants have no recoveries
		if tenant != want {
			t.Errorf("of the tenant %+v, want %+v", tenant, want)
		}
		r.tally.Close()
		if r.log.Len() > 0 {
			t.Errorf("it logged %s", &r.log)
		}
	})
}

func TestAJobThatWasCompletedInATransactionIsCompleted(t *testing.T) {
	inCount(t, func(r *counted) {
		r.enqueue(2)
		claims := r.claim(2)
		sleep(2 * time.Second)
		for i, c := range claims {
			in := sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: sluice.EventComplete}
			if _, err := r.store.Settle(t.Context(), []sluice.Settlement{in}); err != nil { // as CompleteTx does, past the tally
				t.Fatal(err)
			}
			// The settlement of a worker, after a handler that returned nil (i is 0) or an error.
			in.Event, in.Error, in.Claim, in.InTx, in.Returned = sluice.EventBury, "the transaction was not committed", c, true, i == 0
			if _, err := r.watched.Settle(t.Context(), []sluice.Settlement{in}); err != nil {
				t.Fatal(err)
			}
		}
		r.tally.Close()
		sleep(time.Second)
		got := r.summary("acme")
		if want := (stat.Counts{Enqueued: 2, Claimed: 2, Completed: 1, Dead: 1, Failed: 1}); got.Counts != want {
			t.Errorf("%+v, want %+v", got.Counts, want)
		}
		if off := (got.Run.P99 - 2*time.Second).Abs(); off > 100*time.Millisecond {
			t.Errorf("it ran %s, want 2s", got.Run.P99)
		}
	})
}

func TestLostAnswersAndOutagesLoseNothingAndCountNothingTwice(t *testing.T) {
	inCount(t, func(r *counted) {
		for n, came := range []bool{true, false} {
			r.store.lost.Store(true)
			r.store.came.Store(came)
			r.enqueue(3)
			sleep(45 * time.Second)
			if lines := strings.Count(r.log.String(), "statistics not stored"); lines < 3 {
				t.Errorf("it logged\n%s", &r.log)
			}
			r.log.Reset()
			r.store.lost.Store(false)
			sleep(15 * time.Second)
			if got := r.summary("").Counts.Enqueued; got != int64(3*(n+1)) {
				t.Errorf("%d enqueued, want %d", got, 3*(n+1))
			}
		}
		r.tally.Close()
	})
}

func TestTheRestIsStoredAtTheEnd(t *testing.T) {
	inCount(t, func(r *counted) {
		r.enqueue(2)
		r.tally.Close()
		r.tally.Close()
		sleep(time.Second)
		if got := r.summary("").Counts.Enqueued; got != 2 {
			t.Errorf("%d enqueued, want 2", got)
		}
	})
}

func TestAStoreThatDoesNotAnswerHoldsUpTheEndForAShortWhile(t *testing.T) {
	inCount(t, func(r *counted) {
		tally := counter.New(silent{}, counter.Options{Logger: slog.New(slog.DiscardHandler), Last: time.Second})
		tally.Moved("payments", "", sluice.EventEnqueue, 1)
		begun := time.Now()
		if tally.Close(); time.Since(begun) != time.Second {
			r.Errorf("it took %s", time.Since(begun))
		}
	})
}

// silent is a store that never answers.
type silent struct{}

func (silent) Now(ctx context.Context) (time.Time, error) { return time.Time{}, wait(ctx) }

func (silent) AddStats(ctx context.Context, _ string, _ []stat.Stat) error { return wait(ctx) }

func wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestNothingIsCountedWithoutATally(t *testing.T) {
	var none *counter.Tally
	none.Enqueued([]sluice.Insert{{}}, []sluice.Receipt{{ID: sluice.NewID()}})
	none.Claimed([]*sluice.Claim{{}})
	none.Settled([]sluice.Settlement{{}}, []error{nil})
	none.Recovered("payments", sluice.Recovered{Requeued: 1})
	none.StartFailed("payments", "")
	none.Close()
	if none.Take(time.Now()) != nil {
		t.Error("a tally that is nil counted, want nothing")
	}
}

func BenchmarkTally(b *testing.B) {
	const jobs = 100
	tally := counter.New(nil, counter.Options{})
	var claims []*sluice.Claim
	for n := range jobs {
		claims = append(claims, &sluice.Claim{Job: sluice.Job{Queue: "payments", Tenant: fmt.Sprint("tenant ", n%15), ClaimedAt: time.Now(), DueAt: time.Now().Add(-time.Duration(n) * time.Millisecond)}})
	}
	b.ReportAllocs()
	for b.Loop() {
		tally.Claimed(claims)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*jobs), "ns/move")
}
