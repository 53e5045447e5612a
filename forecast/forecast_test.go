package forecast_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
)

// ahead is a store whose clock stands at four o'clock, and a queue in it.
type ahead struct {
	*testing.T
	client *sluice.Client
	store  *memory.Store
	now    time.Time
}

func newAhead(t *testing.T, change func(*sluice.Settings)) *ahead {
	t.Helper()
	a := &ahead{T: t, now: time.Date(2026, 12, 1, 16, 0, 0, 0, time.UTC)}
	a.store = memory.New(memory.Options{Now: func() time.Time { return a.now }})
	a.client = sluice.NewClient(a.store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	change(&settings)
	if _, err := a.client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return a
}

// due enqueues jobs that are due after wait.
func (a *ahead) due(wait time.Duration, jobs int) {
	a.Helper()
	many := make([]sluice.NewJob, jobs)
	for i := range many {
		many[i] = sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{DueAt: a.now.Add(wait), Tenant: "acme"}}
	}
	if _, err := a.client.EnqueueMany(a.Context(), many); err != nil {
		a.Fatal(err)
	}
}

func (a *ahead) forecast(request forecast.Request) forecast.Queue {
	a.Helper()
	if _, err := forecast.Recount(a.Context(), a.store); err != nil {
		a.Fatal(err)
	}
	f, err := forecast.Of(a.Context(), a.store, request)
	if err != nil {
		a.Fatal(err)
	}
	return f.Queues[0]
}

// at finds the bucket that begins after wait.
func (a *ahead) at(q forecast.Queue, wait time.Duration) forecast.Bucket {
	a.Helper()
	for _, w := range q.Waves {
		if w.Span > 0 && w.At.Equal(a.now.Add(wait)) {
			return w
		}
	}
	a.Fatalf("no bucket begins in %s", wait)
	return forecast.Bucket{}
}

func (a *ahead) times(what string, w forecast.Bucket, last, finished, late time.Duration) {
	a.Helper()
	near := func(x, y time.Duration) bool { return (x - y).Abs() <= 10*time.Millisecond }
	if !near(w.LastStart.Sub(a.now), last) || finished > 0 && !near(w.Finished.Sub(a.now), finished) || !near(w.Late, late) {
		a.Errorf("%s: the last starts after %s and is finished after %s, %s late; want %s, %s, %s",
			what, w.LastStart.Sub(a.now), w.Finished.Sub(a.now), w.Late, last, finished, late)
	}
}

func (a *ahead) counts(what string, w forecast.Bucket, due, starts, backlog int) {
	a.Helper()
	if w.Jobs != due || w.Starts != starts || w.Backlog != backlog {
		a.Errorf("%s: %d due, %d start, %d wait; want %d, %d, %d", what, w.Jobs, w.Starts, w.Backlog, due, starts, backlog)
	}
}

func TestForecastOfAWaveAtARate(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(2), 10 })
	a.due(10*time.Minute, 1000)
	a.due(12*time.Minute, 50)
	q := a.forecast(forecast.Request{Bucket: time.Minute, WhatIf: forecast.WhatIf{RunTime: 30 * time.Second}})
	// 10 start at once, then 2 a second. The last of 1,000 starts after 495 s, and the last of the 50 behind them 25 s
	// later.
	wave := a.at(q, 10*time.Minute)
	a.counts("the wave", wave, 1000, 130, 870)
	a.times("the wave", wave, 10*time.Minute+495*time.Second, 10*time.Minute+525*time.Second, 495*time.Second)
	a.counts("the minute after", a.at(q, 11*time.Minute), 0, 120, 750)
	a.counts("the small one", a.at(q, 12*time.Minute), 50, 120, 680)
	a.times("the small one", a.at(q, 12*time.Minute), 10*time.Minute+520*time.Second, 10*time.Minute+550*time.Second, 400*time.Second)
	a.counts("when all is done", a.at(q, 19*time.Minute), 0, 0, 0)
	if wave.Used != 1 || a.at(q, 9*time.Minute).Used != 0 || a.at(q, 18*time.Minute).Used < 0.6 || a.at(q, 18*time.Minute).Used > 0.7 {
		t.Errorf("used: %v, %v, %v", wave.Used, a.at(q, 9*time.Minute).Used, a.at(q, 18*time.Minute).Used)
	}
	if len(q.Limits) != 1 || q.Limits[0].Summary != "2/s" || q.Held() != "2/s" {
		t.Errorf("limits: %+v", q.Limits)
	}
}

func TestForecastWithoutLimits(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(*sluice.Settings) {})
	a.due(0, 3)
	a.due(10*time.Minute, 100)
	q := a.forecast(forecast.Request{})
	a.counts("what is due", q.Waves[0], 3, 0, 3)
	a.times("what is due", q.Waves[0], 0, 0, 0)
	a.counts("the first bucket", a.at(q, 0), 0, 3, 0)
	a.counts("the wave", a.at(q, 10*time.Minute), 100, 100, 0)
	a.times("the wave", a.at(q, 10*time.Minute), 10*time.Minute, 0, 0)
	if len(q.Limits) != 0 || !strings.HasPrefix(q.Held(), "nothing limits it") || !a.at(q, 10*time.Minute).Finished.IsZero() {
		t.Errorf("the forecast is %+v, want no limits and no end", q)
	}
	if !strings.Contains(strings.Join(q.Notes, "\n"), "how long one runs is not known") {
		t.Errorf("notes: %q", q.Notes)
	}
}

func TestForecastOfWhatIsInFlightAtOnce(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Concurrency = 10 })
	a.due(10*time.Minute, 100)
	// 10 run at once for 20 s each, so half a job starts each second.
	q := a.forecast(forecast.Request{Bucket: time.Minute, WhatIf: forecast.WhatIf{RunTime: 20 * time.Second}})
	a.counts("the wave", a.at(q, 10*time.Minute), 100, 40, 60)
	a.times("the wave", a.at(q, 10*time.Minute), 13*time.Minute, 13*time.Minute+20*time.Second, 3*time.Minute)
	// Without a run time, the forecast cannot apply the concurrency.
	q = a.forecast(forecast.Request{Bucket: time.Minute})
	if len(q.Limits) != 0 || !strings.Contains(strings.Join(q.Notes, "\n"), "leaves concurrency 10 out") {
		t.Errorf("limits %+v, notes %q", q.Limits, q.Notes)
	}
	// The slots of workers are a limit, too. A concurrency of WhatIf replaces both other limits.
	_, err := presence.Given(a.store).Heartbeat(t.Context(), presence.Holder{ID: "h:1:x", Role: "worker", Queues: []string{"q"}, Slots: 5})
	if err != nil {
		t.Fatal(err)
	}
	q = a.forecast(forecast.Request{Bucket: time.Minute, WhatIf: forecast.WhatIf{RunTime: 20 * time.Second}})
	a.counts("with five slots", a.at(q, 10*time.Minute), 100, 20, 80)
	q = a.forecast(forecast.Request{Bucket: time.Minute, WhatIf: forecast.WhatIf{RunTime: 20 * time.Second, Concurrency: 100}})
	a.counts("with a concurrency", a.at(q, 10*time.Minute), 100, 100, 0)
}

// TestForecastKeepsToTheIntervalBetweenClaims has processes that each claim a batch at most, once per interval.
func TestForecastKeepsToTheIntervalBetweenClaims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		engine     string
		batch      int
		slots      []int // of the processes
		last       time.Duration
		held, note string
	}{
		"a dispatcher":                  {"temporal", 50, []int{0}, 95 * time.Second, "50 every 5s by interval", ""},
		"two workers, one of few slots": {"", 50, []int{80, 25}, 185 * time.Second / 3, "75 every 5s by interval", ""},
		"workers without a batch":       {"", 0, []int{100}, 45 * time.Second, "100 every 5s by interval", ""},
		"a dispatcher without a batch":  {"temporal", 0, []int{0}, 0, "nothing limits it", "the forecast leaves interval 5s out"},
		"nobody":                        {"", 50, nil, 0, "nothing limits it", "supposes that there are enough"},
	} {
		a := newAhead(t, func(s *sluice.Settings) { s.Interval, s.Batch, s.Engine = 5*time.Second, c.batch, c.engine })
		for n, slots := range c.slots {
			role := presence.RoleWorker
			if c.engine != "" {
				role = presence.RoleDispatcher
			}
			if _, err := presence.Given(a.store).Heartbeat(t.Context(), presence.Holder{ID: fmt.Sprint("h:", n, ":x"), Role: role, Queues: []string{"q"}, Slots: slots}); err != nil {
				t.Fatal(err)
			}
		}
		a.due(10*time.Minute, 1000)
		q := a.forecast(forecast.Request{Bucket: time.Minute})
		a.times(name, a.at(q, 10*time.Minute), 10*time.Minute+c.last, 0, c.last)
		if !strings.HasPrefix(q.Held(), c.held) || !strings.Contains(strings.Join(q.Notes, "\n"), c.note) {
			t.Errorf("%s: held by %q, notes %q", name, q.Held(), q.Notes)
		}
	}
}

func TestForecastKnowsWhoTakesTheJobs(t *testing.T) {
	t.Parallel()
	worker := presence.Holder{ID: "h:1:x", Role: presence.RoleWorker, Queues: []string{"q"}, Slots: 100}
	dispatcher := presence.Holder{ID: "h:2:x", Role: presence.RoleDispatcher, Queues: []string{"q"}}
	for name, c := range map[string]struct {
		engine   string
		holder   presence.Holder
		unserved bool
		note     string
	}{
		"a worker":                      {"", worker, false, ""},
		"a forwarder":                   {"", presence.Holder{ID: "h:3:x", Role: presence.RoleForwarder, Queues: []string{"q"}}, false, ""},
		"a worker of another queue":     {"", presence.Holder{ID: "h:1:x", Role: presence.RoleWorker, Queues: []string{"other"}}, true, "no worker of it was seen"},
		"a dispatcher without a reason": {"", dispatcher, true, "no worker of it was seen"},
		"a worker beside an engine":     {"temporal", worker, true, "no dispatcher of it was seen"},
		"a dispatcher":                  {"temporal", dispatcher, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAhead(t, func(s *sluice.Settings) { s.Engine, s.Concurrency = c.engine, 10 })
			a.T = t
			a.due(10*time.Minute, 100)
			if _, err := presence.Given(a.store).Heartbeat(t.Context(), c.holder); err != nil {
				t.Fatal(err)
			}
			q := a.forecast(forecast.Request{Bucket: time.Minute, WhatIf: forecast.WhatIf{RunTime: 20 * time.Second}})
			notes := strings.Join(q.Notes, "\n")
			if q.Unserved != c.unserved || c.note == "" && strings.Contains(notes, "was seen") || !strings.Contains(notes, c.note) {
				t.Errorf("unserved %t, notes %q, want %t, %q", q.Unserved, notes, c.unserved, c.note)
			}
			a.counts("by the concurrency, whoever serves", a.at(q, 10*time.Minute), 100, 40, 60)
		})
	}
}

func TestForecastOfWhatIf(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Rate = sluice.RatePerSecond(1) })
	a.due(10*time.Minute, 6000)
	for name, c := range map[string]struct {
		what forecast.WhatIf
		last time.Duration
	}{
		"as it is":             {forecast.WhatIf{}, 5999 * time.Second},
		"a rate":               {forecast.WhatIf{Rate: sluice.RatePerSecond(100)}, 59950 * time.Millisecond},
		"a batch":              {forecast.WhatIf{Batch: 500, Every: 5 * time.Second}, 55 * time.Second},
		"a rate and batches":   {forecast.WhatIf{Rate: sluice.RatePerSecond(50), Batch: 500, Every: 5 * time.Second}, 119960 * time.Millisecond},
		"a rate and slow runs": {forecast.WhatIf{Rate: sluice.RatePerSecond(100), Concurrency: 600, RunTime: time.Minute}, 540 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := *a
			b.T = t
			q := b.forecast(forecast.Request{Bucket: time.Minute, WhatIf: c.what})
			b.times(name, b.at(q, 10*time.Minute), 10*time.Minute+c.last, 0, c.last)
		})
	}
}

func TestForecastOfAPausedQueue(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Rate = sluice.RatePerSecond(1) })
	a.due(time.Minute, 60)
	act := sluice.Act{By: "test"}
	if err := a.client.Pause(t.Context(), "q", act); err != nil {
		t.Fatal(err)
	}
	q := a.forecast(forecast.Request{Bucket: time.Minute})
	if w := a.at(q, time.Minute); !w.Never() || w.Backlog != 60 || w.Late != 0 {
		t.Errorf("the wave is %+v, want one that never starts, with 60 waiting", w)
	}
	until := a.now.Add(10 * time.Minute)
	if _, err := a.client.ChangeSettings(t.Context(), "q", act, func(s *sluice.Settings) error { s.PausedUntil = until; return nil }); err != nil {
		t.Fatal(err)
	}
	q = a.forecast(forecast.Request{Bucket: time.Minute})
	a.times("after the pause", a.at(q, time.Minute), 10*time.Minute+59*time.Second, 0, 9*time.Minute+59*time.Second)
}

// sets schedules settings for a part of each day.
func (a *ahead) sets(from, to, setting, value string) {
	a.Helper()
	if _, err := changes.Schedule(a.Context(), a.client, "q", changes.Window{From: from, To: to, Zone: "UTC"}, map[string]string{setting: value}, sluice.Act{By: "test"}); err != nil {
		a.Fatal(err)
	}
}

func TestForecastObeysScheduledChangesOfARate(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Rate = sluice.RatePerSecond(1) })
	a.due(5*time.Minute, 600)
	a.sets("16:10", "16:20", "rate", "10/s")
	// 301 start until 16:10, and the others in 29.9 s.
	q := a.forecast(forecast.Request{Bucket: time.Minute})
	a.times("the wave", a.at(q, 5*time.Minute), 10*time.Minute+29900*time.Millisecond, 0, 5*time.Minute+29900*time.Millisecond)
	a.counts("the last slow minute", a.at(q, 9*time.Minute), 0, 60, 299)
	if slow, quick := a.at(q, 9*time.Minute).Used, a.at(q, 10*time.Minute).Used; slow != 1 || quick < 0.49 || quick > 0.5 {
		t.Errorf("used: %v before the change, %v after it", slow, quick)
	}
	if want := "the forecast obeys scheduled changes: rate=10/s from 2026-12-01T16:10:00Z, rate=1/s from 2026-12-01T16:20:00Z"; !slices.Contains(q.Notes, want) {
		t.Errorf("notes %q, want %s", q.Notes, want)
	}
	// A change for a while comes to its end.
	if _, err := changes.For(t.Context(), a.client, "q", 7*time.Minute, sluice.Act{By: "test"}, func(s *sluice.Settings) error { s.Rate = sluice.RatePerSecond(2); return nil }); err != nil {
		t.Fatal(err)
	}
	a.counts("the last minute of 2/s", a.at(a.forecast(forecast.Request{Bucket: time.Minute}), 7*time.Minute), 0, 60, 600-1-240-60)
	// A rate that somebody assumes stays.
	q = a.forecast(forecast.Request{Bucket: time.Minute, WhatIf: forecast.WhatIf{Rate: sluice.RatePerSecond(5)}})
	a.times("at 5/s", a.at(q, 5*time.Minute), 5*time.Minute+599*time.Second/5, 0, 599*time.Second/5)
}

func TestForecastObeysScheduledPausesAndPlaces(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Concurrency = 10 })
	a.due(10*time.Minute, 100)
	a.sets("16:11", "18:00", "concurrency", "20")
	// 10 start at once and 30 more until 16:11, then 10 at once and 1 a second.
	q := a.forecast(forecast.Request{Bucket: time.Minute, WhatIf: forecast.WhatIf{RunTime: 20 * time.Second}})
	a.times("the wave", a.at(q, 10*time.Minute), 11*time.Minute+50*time.Second, 12*time.Minute+10*time.Second, time.Minute+50*time.Second)
	a.sets("16:05", "16:30", "paused", "true")
	// The limit has 20 places when the queue opens: 20 at once, then 1 a second.
	q = a.forecast(forecast.Request{Bucket: time.Minute, Ahead: 20 * time.Minute, WhatIf: forecast.WhatIf{RunTime: 20 * time.Second}})
	a.times("after the pause", a.at(q, 10*time.Minute), 31*time.Minute+20*time.Second, 0, 21*time.Minute+20*time.Second)
	a.counts("in the pause", a.at(q, 10*time.Minute), 100, 0, 100)
}

func TestForecastObeysScheduledChangesOfTenants(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.TenantRate = sluice.RatePerSecond(1) })
	a.dueOf("acme", 5*time.Minute, 361)
	a.dueOf("bolt", 12*time.Minute, 61)
	a.sets("16:10", "23:00", "tenant_rate", "2/s")
	q := a.forecast(minutes(0))
	a.starts(a.at(q, 5*time.Minute), "acme", 10*time.Minute+30*time.Second)
	a.starts(a.at(q, 12*time.Minute), "bolt", 12*time.Minute+30*time.Second)
}

func TestForecastByTenantByTheHourAndAsJSON(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(*sluice.Settings) {})
	a.due(48*time.Hour, 120)
	a.due(30*24*time.Hour, 1)
	q := a.forecast(forecast.Request{Ahead: 72 * time.Hour, Tenants: true})
	if w := a.at(q, 48*time.Hour); w.Jobs != 120 || w.Starts != 120 || w.Tenants["acme"] != 120 || q.Later.Jobs != 1 {
		t.Errorf("%+v, later %+v", w, q.Later)
	}
	f, err := forecast.Of(t.Context(), a.store, forecast.Request{Ahead: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"bucket":"1m"`, `"until":"2026-12-01T16:10:00Z"`, `"span":"1m"`, `"limits":[]`, `"later":{"jobs":121}`, `"took":"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}

func TestForecastRefusesNonsense(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(*sluice.Settings) {})
	for field, request := range map[string]forecast.Request{
		"ahead":       {Ahead: 8 * 24 * time.Hour},
		"bucket":      {Bucket: 7 * time.Minute},
		"rate":        {WhatIf: forecast.WhatIf{Rate: sluice.Rate{Jobs: -1, Per: 1}}},
		"batch":       {WhatIf: forecast.WhatIf{Batch: 5}},
		"concurrency": {WhatIf: forecast.WhatIf{Concurrency: -1}},
		"duration":    {WhatIf: forecast.WhatIf{RunTime: -time.Second}},
	} {
		var invalid *sluice.InvalidError
		if _, err := forecast.Of(t.Context(), a.store, request); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := forecast.Of(t.Context(), a.store, forecast.Request{Ahead: 48 * time.Hour, Bucket: time.Minute}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("minutes of two days: %v", err)
	}
	if _, err := forecast.Of(t.Context(), a.store, forecast.Request{Queue: "nobody"}); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("an unknown queue: %v", err)
	}
}

func TestForecastSaysThatACountIsOld(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(*sluice.Settings) {})
	f, err := forecast.Of(t.Context(), a.store, forecast.Request{})
	if err != nil || !f.Queues[0].Stale || !f.Queues[0].CountedAt.IsZero() {
		t.Fatalf("never counted: %+v, %v", f.Queues, err)
	}
	if q := a.forecast(forecast.Request{}); q.Stale {
		t.Error("a fresh count is stale")
	}
	for _, passed := range []time.Duration{2 * time.Minute, 10 * 24 * time.Hour} {
		a.now = a.now.Add(passed)
		f, err = forecast.Of(t.Context(), a.store, forecast.Request{})
		if err != nil || !f.Queues[0].Stale {
			t.Fatalf("after %s: %+v, %v", passed, f.Queues, err)
		}
	}
	if len(f.Queues[0].Waves) != 0 {
		t.Error("a count of last week still tells of waves")
	}
}

// named stores a limit that the queue shares.
func (a *ahead) named(name string, change func(*limit.Limit)) {
	a.Helper()
	_, err := limit.Change(a.Context(), a.store, name, sluice.Act{By: "test"}, func(l *limit.Limit) error {
		change(l)
		return nil
	})
	if err != nil {
		a.Fatal(err)
	}
}

func TestForecastKeepsToSharedLimits(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Limits = "bank,ledger,host,unknown" })
	settings := sluice.DefaultSettings()
	settings.Limits = "bank"
	if _, err := a.client.EnsureQueue(t.Context(), "refunds", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	a.named("bank", func(l *limit.Limit) { l.Rate, l.Burst = sluice.RatePerSecond(2), 10 })
	a.named("ledger", func(l *limit.Limit) { l.Concurrency = 5 })
	a.named("host", func(l *limit.Limit) { l.Concurrency, l.PerKey = 1, true })
	a.due(10*time.Minute, 1000)
	q := a.forecast(forecast.Request{Bucket: time.Minute, WhatIf: forecast.WhatIf{RunTime: time.Second}})
	// The rate of the bank is the tighter one: the last starts after (1,000 - 10) / 2 s.
	wave := a.at(q, 10*time.Minute)
	a.times("the wave", wave, 10*time.Minute+495*time.Second, 10*time.Minute+496*time.Second, 495*time.Second)
	if want := "2/s by limit bank; concurrency 5 by limit ledger, each job 1s"; q.Held() != want {
		t.Errorf("held by %q, want %q", q.Held(), want)
	}
	notes := strings.Join(q.Notes, "\n")
	for _, want := range []string{"it shares the limit bank with refunds; the forecast supposes that it gets all of it from now on", "leaves out limits that count keys or costs: host"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes %q do not say %q", notes, want)
		}
	}
}

func TestForecastWaitsForAClosedLimit(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Limits = "bank" })
	a.named("bank", func(l *limit.Limit) { l.Closed, l.ClosedUntil = true, a.now.Add(30*time.Minute) })
	a.due(10*time.Minute, 100)
	q := a.forecast(forecast.Request{})
	a.times("the wave", a.at(q, 10*time.Minute), 30*time.Minute, 0, 20*time.Minute)
	if notes := strings.Join(q.Notes, "\n"); !strings.Contains(notes, "its limit bank is closed until 2026-12-01T16:30:00Z") {
		t.Errorf("notes: %q", notes)
	}
	a.named("bank", func(l *limit.Limit) { l.ClosedUntil = time.Time{} })
	if w := a.at(a.forecast(forecast.Request{}), 10*time.Minute); !w.Never() {
		t.Errorf("behind a limit that nobody opens, %+v", w)
	}
}
