package stat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
)

// inBucket runs a test in fake time that starts at the begin of a bucket.
func inBucket(t *testing.T, test func(t *testing.T, began time.Time)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, time.Now().UTC()) }) // fake time begins at midnight
}

func TestCounterGivesSlotsThatAreOver(t *testing.T) {
	inBucket(t, func(t *testing.T, began time.Time) {
		var c stat.Counter
		c.Moved("payments", "", sluice.EventEnqueue, 3, stat.Unknown, stat.Unknown, stat.Unknown)
		c.Moved("payments", "", sluice.EventClaim, 2, time.Second, stat.Unknown, stat.Unknown)
		time.Sleep(9 * time.Second)
		c.Moved("payments", "", sluice.EventComplete, 1, stat.Unknown, 0, 2*time.Second)
		if got := c.Take(time.Now()); len(got) != 0 {
			t.Errorf("took %+v of a slot that is not over", got)
		}
		time.Sleep(time.Second)
		c.Moved("mail", "", sluice.EventEnqueue, 1, stat.Unknown, stat.Unknown, stat.Unknown)
		want := stat.Stat{Queue: "payments", At: began, Every: stat.Fine, Counts: stat.Counts{Enqueued: 3, Claimed: 2, Completed: 1}}
		want.Wait.Add(time.Second)
		want.Wait.Add(time.Second)
		want.Run.Add(0)
		want.Total.Add(2 * time.Second)
		took(t, c.Take(time.Now()), want)
		time.Sleep(35 * time.Second)
		took(t, c.Take(time.Now()), stat.Stat{Queue: "mail", At: began.Add(10 * time.Second), Every: stat.Fine, Counts: stat.Counts{Enqueued: 1}})
		took(t, c.Take(time.Now()))
		c.Moved("mail", "", sluice.EventEnqueue, 1, stat.Unknown, stat.Unknown, stat.Unknown)
		took(t, c.TakeAll(time.Now()), stat.Stat{Queue: "mail", At: began.Add(40 * time.Second), Every: stat.Fine, Counts: stat.Counts{Enqueued: 1}})
		c.Moved("mail", "", sluice.EventEnqueue, 1, stat.Unknown, stat.Unknown, stat.Unknown)
		took(t, c.TakeAll(time.Now()), stat.Stat{Queue: "mail", At: began.Add(50 * time.Second), Every: stat.Fine, Counts: stat.Counts{Enqueued: 1}})
	})
}

// took compares the statistics that a counter returned.
func took(t *testing.T, got []stat.Stat, want ...stat.Stat) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("took %+v, want %+v", got, want)
	}
	for i := range want {
		if !got[i].Equal(want[i]) {
			t.Errorf("took %+v, want %+v", got[i], want[i])
		}
	}
}

func TestEachMoveIsCountedAsWhatItIs(t *testing.T) {
	t.Parallel()
	for event, want := range map[sluice.Event]stat.Counts{
		sluice.EventEnqueue: {Enqueued: 2}, sluice.EventRequeue: {Requeued: 2}, sluice.EventClaim: {Claimed: 2}, sluice.EventDispatch: {Dispatched: 2},
		sluice.EventComplete: {Completed: 2}, sluice.EventRetry: {Failed: 2}, sluice.EventBury: {Dead: 2, Failed: 2}, sluice.EventRelease: {Released: 2},
		sluice.EventRecover: {Recovered: 2}, sluice.EventCancel: {Cancelled: 2}, sluice.EventDoubt: {Uncertain: 2}, audit.EventChange: {},
	} {
		var c stat.Counter
		c.Moved("q", "acme", event, 2, time.Second, time.Second, time.Second)
		got := c.TakeAll(time.Now())
		if want == (stat.Counts{}) {
			took(t, got)
			continue
		}
		if len(got) != 2 || got[0].Counts != want || got[0].Tenant != "" || got[1].Counts != want || got[1].Tenant != "acme" {
			t.Errorf("%s: took %+v, want %+v for the queue and for acme", event, got, want)
		}
	}
	var c stat.Counter
	c.Moved("q", "", sluice.EventBury, 1, stat.Unknown, stat.Unknown, stat.Unknown)
	c.StartFailed("q", "", 4)
	if got := c.TakeAll(time.Now()); len(got) != 1 || got[0].Counts != (stat.Counts{Dead: 1, StartFailed: 4}) {
		t.Errorf("a lost job's end: %+v", got)
	}
}

func TestEveryMoveOfTheStateMachineIsCounted(t *testing.T) {
	t.Parallel()
	for _, move := range sluice.Moves() {
		var c stat.Counter
		c.Moved("q", "", move.Event, 1, stat.Unknown, stat.Unknown, stat.Unknown)
		if got := c.TakeAll(time.Now()); len(got) != 1 || got[0].Counts.Sum() != 1 {
			t.Errorf("%s: took %+v, want one bucket with one count", move.Event, got)
		}
	}
}

func TestTheLargestTenantsAreTold(t *testing.T) {
	inBucket(t, func(t *testing.T, _ time.Time) {
		var c stat.Counter
		const small, large = 3000, stat.MaxTenants
		for n := range small {
			if n%10 == 0 {
				for big := range large {
					c.Moved("q", fmt.Sprintf("large %02d", big), sluice.EventClaim, 1, 0, 0, 0)
				}
			}
			c.Moved("q", fmt.Sprint("small ", n), sluice.EventClaim, 1, 0, 0, 0)
		}
		got := c.TakeAll(time.Now())
		if len(got) != 1+large || got[0].Counts.Claimed != small+large*small/10 {
			t.Fatalf("took %d, the whole is %+v", len(got), got[0].Counts)
		}
		for i, s := range got[1:] {
			if want := fmt.Sprintf("large %02d", i); s.Tenant != want || s.Counts.Claimed != small/10 || s.Wait.Count() != small/10 {
				t.Errorf("took %s with %+v, want all of %s", s.Tenant, s.Counts, want)
			}
		}
	})
}

func TestSlotsGoByTheClockOfTheStore(t *testing.T) {
	inBucket(t, func(t *testing.T, began time.Time) {
		for _, skew := range []time.Duration{-24 * time.Hour, 24*time.Hour + 3*time.Second} {
			began := time.Now().UTC()
			var c stat.Counter
			c.Moved("q", "", sluice.EventEnqueue, 1, stat.Unknown, stat.Unknown, stat.Unknown)
			time.Sleep(10 * time.Second)
			c.Moved("q", "", sluice.EventEnqueue, 1, stat.Unknown, stat.Unknown, stat.Unknown)
			got := c.Take(time.Now().Add(skew))
			at := began.Add(skew).Truncate(stat.Fine)
			if len(got) != 1 || !got[0].At.Equal(at) {
				t.Errorf("skew %s: took %+v, want the slot at %s", skew, got, at)
			}
			time.Sleep(10 * time.Second)
			got = c.Take(time.Now().Add(skew))
			if len(got) != 1 || !got[0].At.Equal(at.Add(stat.Fine)) {
				t.Errorf("skew %s: took %+v, want the next slot", skew, got)
			}
			// The clock goes back, and the counter must not return a bucket twice.
			c.Moved("q", "", sluice.EventEnqueue, 1, stat.Unknown, stat.Unknown, stat.Unknown)
			if got = c.Take(time.Now().Add(skew - 15*time.Second)); len(got) != 0 {
				t.Errorf("skew %s: took %+v", skew, got)
			}
			time.Sleep(25 * time.Second)
			got = c.Take(time.Now().Add(skew - 15*time.Second))
			if len(got) != 1 || !got[0].At.Equal(at.Add(2*stat.Fine)) || got[0].Counts.Enqueued != 1 {
				t.Errorf("skew %s: took %+v, want the one after it", skew, got)
			}
		}
	})
}

func TestWhatIsNoSlotIsRefused(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 12, 0, 10, 0, time.UTC)
	good := stat.Stat{Queue: "q", At: at, Every: stat.Fine}
	if err := good.CheckNew(); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*stat.Stat){
		"no queue":   func(s *stat.Stat) { s.Queue = "" },
		"a tenant":   func(s *stat.Stat) { s.Tenant = strings.Repeat("x", sluice.MaxTenantBytes+1) },
		"an instant": func(s *stat.Stat) { s.At = at.Add(time.Second) },
		"a minute":   func(s *stat.Stat) { s.Every = stat.Minute },
		"a count":    func(s *stat.Stat) { s.Counts.StartFailed = -1 },
	} {
		s := good
		change(&s)
		if err := s.CheckNew(); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSlotsOfAWindow(t *testing.T) {
	t.Parallel()
	for window, want := range map[time.Duration]time.Duration{
		time.Minute: stat.Fine, 59 * time.Minute: stat.Fine, time.Hour: stat.Minute, 59 * time.Hour: stat.Minute,
		60 * time.Hour: stat.Hour, 90 * 24 * time.Hour: stat.Hour,
	} {
		if got := stat.Every(window); got != want {
			t.Errorf("%s: %s, want %s", window, got, want)
		}
	}
}

func TestSummaryTellsTheFiguresOfTheSources(t *testing.T) {
	inBucket(t, func(t *testing.T, began time.Time) {
		store := memory.New(memory.Options{NoStatistics: true})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		empty, err := stat.OfQueues(t.Context(), store, sluice.QueueFilter{}, 0)
		if err != nil || len(empty) != 0 {
			t.Errorf("without queues: %+v, %v", empty, err)
		}
		for range 2 {
			if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "payments", Payload: []byte(`{}`)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "payments", Limit: 1, Holder: "h", Lease: time.Hour, Token: sluice.NewToken()}); err != nil {
			t.Fatal(err)
		}
		idle, err := stat.Of(t.Context(), store, "payments", 0)
		if err != nil || idle.SuccessRate != 1 || idle.LeaseExpiryRate != 0 || idle.Rate != 0 || idle.Run != (stat.Quantiles{}) {
			t.Errorf("when nothing ended: %+v, %v", idle, err)
		}
		var c stat.Counter
		c.Take(time.Now())
		c.Moved("payments", "acme", sluice.EventClaim, 20, time.Second, stat.Unknown, stat.Unknown)
		c.Moved("payments", "acme", sluice.EventRecover, 1, stat.Unknown, stat.Unknown, stat.Unknown)
		c.Moved("payments", "acme", sluice.EventRetry, 5, stat.Unknown, time.Hour, time.Hour)
		for n := range 19 {
			c.Moved("payments", "", sluice.EventComplete, 1, stat.Unknown, time.Duration(n+1)*time.Second, time.Minute)
		}
		c.Moved("payments", "", sluice.EventBury, 1, stat.Unknown, time.Second, time.Minute)
		time.Sleep(time.Minute)
		if err := store.AddStats(t.Context(), "h", c.Take(time.Now())); err != nil {
			t.Fatal(err)
		}
		got, err := stat.Of(t.Context(), store, "payments", 0)
		if err != nil {
			t.Fatal(err)
		}
		summaryIs(t, got, began)
		tenant, err := stat.OfTenant(t.Context(), store, "payments", "acme", time.Hour)
		if err != nil || tenant.Counts != (stat.Counts{Claimed: 20, Recovered: 1, Failed: 5}) || tenant.SuccessRate != 1 {
			t.Errorf("of the tenant: %+v, %v", tenant, err)
		}
		if _, err := stat.Of(t.Context(), store, "nobody", 0); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("of no queue: %v", err)
		}
		if _, err := stat.Of(t.Context(), store, "payments", time.Second); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("of a second: %v", err)
		}
	})
}

func TestLeasesOfClaimsBeforeTheWindowRunOutInIt(t *testing.T) {
	t.Parallel()
	at := time.Now()
	buckets := []stat.Stat{{Counts: stat.Counts{Recovered: 3}}, {Counts: stat.Counts{Claimed: 1}}}
	if got := stat.NewSummary(buckets, at.Add(-time.Hour), at).LeaseExpiryRate; got != 1 {
		t.Errorf("of one claim in the window three ran out, a share of %v", got)
	}
}

// summaryIs compares the values of a summary one by one.
func summaryIs(t *testing.T, got stat.Summary, began time.Time) {
	t.Helper()
	if got.Depth.Ready != 1 || got.InFlight != 1 || got.OldestAge != time.Minute {
		t.Errorf("now: %+v", got)
	}
	if !got.From.Equal(began.Add(time.Minute-time.Hour)) || !got.To.Equal(began.Add(time.Minute)) {
		t.Errorf("the window is from %s to %s", got.From, got.To)
	}
	if got.SuccessRate != 0.95 || got.LeaseExpiryRate != 0.05 || got.Rate != 19.0/3600 || got.Counts.Failed != 6 {
		t.Errorf("rates: %+v", got)
	}
	for _, q := range []struct {
		what      string
		got, want time.Duration
	}{
		{"p50 of run", got.Run.P50, 10 * time.Second},
		{"p95 of run", got.Run.P95, 19 * time.Second},
		{"p99 of run", got.Run.P99, 19 * time.Second},
		{"p50 of wait", got.Wait.P50, time.Second},
		{"p95 of total", got.Total.P95, time.Minute},
	} {
		if off := (q.got - q.want).Abs(); float64(off) > stat.HistogramError*float64(q.want) {
			t.Errorf("%s is %s, want %s", q.what, q.got, q.want)
		}
	}
}

func TestStatsFillsInWhatIsLeftOpen(t *testing.T) {
	inBucket(t, func(t *testing.T, began time.Time) {
		store := memory.New(memory.Options{})
		s := stat.Stat{Queue: "q", At: began.Add(-time.Hour), Every: stat.Fine, Counts: stat.Counts{Enqueued: 1}}
		if err := store.AddStats(t.Context(), "h", []stat.Stat{s}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		got, err := stat.Read(t.Context(), store, stat.Filter{})
		s.Every = stat.Minute
		took(t, got, s)
		if err != nil {
			t.Error(err)
		}
		for _, wrong := range []stat.Filter{{Every: time.Second}, {Limit: -1}, {Limit: 10_001}, {Queues: []string{"no queue"}}} {
			if _, err := stat.Read(t.Context(), store, wrong); !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
	})
}

func BenchmarkMoved(b *testing.B) {
	tenants := make([]string, 15)
	for i := range tenants {
		tenants[i] = fmt.Sprint("tenant ", i)
	}
	for name, tenant := range map[string]func(int) string{"whole queue": func(int) string { return "" }, "by tenant": func(i int) string { return tenants[i%len(tenants)] }} {
		b.Run(name, func(b *testing.B) {
			var c stat.Counter
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Moved("payments", tenant(i), sluice.EventComplete, 1, 0, time.Duration(i%1000)*time.Millisecond, 30*time.Second)
			}
		})
	}
}

func TestStatisticsAreKnownWhereSomebodyCounts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	holder := func(counts bool, ago time.Duration, queues ...string) presence.Holder {
		return presence.Holder{Queues: queues, Counts: counts, Seen: now.Add(-ago)}
	}
	for what, c := range map[string]struct {
		counted bool
		holders []presence.Holder
		want    bool
	}{
		"nobody":                               {false, nil, false},
		"somebody did":                         {true, nil, true},
		"a worker counts":                      {false, []presence.Holder{holder(true, 0, "mail", "other")}, true},
		"a worker does not":                    {true, []presence.Holder{holder(true, 0, "mail"), holder(false, 0, "mail")}, false},
		"that of another queue does not":       {true, []presence.Holder{holder(false, 0, "other")}, true},
		"that of another queue counts":         {false, []presence.Holder{holder(true, 0, "other")}, false},
		"a worker that is gone did not":        {true, []presence.Holder{holder(false, time.Minute, "mail")}, true},
		"a worker that is gone counted no job": {false, []presence.Holder{holder(true, time.Minute, "mail")}, false},
	} {
		if got := stat.Known("mail", c.counted, c.holders, now); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// TestSummariesAreOfTheQueuesThatAreChosen has more queues in one bucket than are read at once. Most of the queues are
// deleted.
func TestSummariesAreOfTheQueuesThatAreChosen(t *testing.T) {
	inBucket(t, func(t *testing.T, began time.Time) {
		store := memory.New(memory.Options{NoStatistics: true})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		var stats []stat.Stat
		for n := range 10_500 {
			name := fmt.Sprintf("q%05d", n)
			stats = append(stats, stat.Stat{Queue: name, At: began, Every: stat.Fine, Counts: stat.Counts{Enqueued: 1}})
			if n%1000 > 0 {
				continue
			}
			if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: name, Payload: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.AddStats(t.Context(), "h", stats); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for of, filter := range map[string]sluice.QueueFilter{
			"q00000 to q10000": {}, "q03000 to q09000": {Names: []string{"q03000", "q09000"}}, "q02000 to q04000": {After: "q01000", Limit: 3},
		} {
			found, err := stat.OfQueues(t.Context(), store, filter, time.Minute)
			if err != nil || len(found) == 0 {
				t.Fatalf("%s: %d found, %v", of, len(found), err)
			}
			if has := found[0].Queue + " to " + found[len(found)-1].Queue; has != of {
				t.Errorf("%+v chose %s, want %s", filter, has, of)
			}
			for _, s := range found {
				if s.Counts.Enqueued != 1 || s.Depth.Ready != 1 {
					t.Fatalf("%s: %+v", s.Queue, s)
				}
			}
		}
	})
}
