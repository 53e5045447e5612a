package alert_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	ada   = sluice.Act{By: "ada", Reason: "to see it"}
)

// yard is a store in memory with one queue, in a bubble of fake time.
type yard struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
}

func (y *yard) ok(err error) {
	y.Helper()
	if err != nil {
		y.Fatal(err)
	}
}

func (y *yard) set(change func(*sluice.Settings)) {
	y.Helper()
	_, err := y.client.ChangeSettings(y.Context(), "mail", ada, func(s *sluice.Settings) error { change(s); return nil })
	y.ok(err)
}

func (y *yard) add(jobs int) {
	y.Helper()
	for range jobs {
		_, err := y.client.Enqueue(y.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`)})
		y.ok(err)
	}
}

// ends claims n jobs and settles each with the event. With the event "" the jobs stay claimed.
func (y *yard) ends(jobs int, event sluice.Event) {
	y.Helper()
	claimed, err := y.store.Claim(y.Context(), sluice.ClaimRequest{Queue: "mail", Limit: jobs, Holder: "h:1:x", Lease: time.Hour, Token: sluice.NewToken()})
	y.ok(err)
	if len(claimed.Jobs) != jobs {
		y.Fatalf("claimed %d jobs, want %d", len(claimed.Jobs), jobs)
	}
	for _, c := range claimed.Jobs {
		if event == "" {
			continue
		}
		errs, err := y.store.Settle(y.Context(), []sluice.Settlement{{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: event, Error: "no"}})
		y.ok(errors.Join(append(errs, err)...))
	}
}

func (y *yard) serves(conditions ...presence.Condition) {
	y.Helper()
	role := presence.RoleWorker
	if len(conditions) > 0 { // of an engine
		role = presence.RoleDispatcher
	}
	_, err := presence.Given(y.store).Heartbeat(y.Context(), presence.Holder{ID: "h:1:x", Role: role, Queues: []string{"mail"}, Conditions: conditions})
	y.ok(err)
}

func (y *yard) follows(conditions ...presence.Condition) {
	y.Helper()
	_, err := presence.Given(y.store).Heartbeat(y.Context(), presence.Holder{ID: "h:2:x", Role: presence.RoleUpkeep, Conditions: conditions})
	y.ok(err)
}

// broken is the condition of a dispatcher whose breaker is open.
func broken(queue string) presence.Condition {
	return presence.EngineCondition(queue, "eu", time.Now(), "the breaker is open", errors.New("no route"))
}

var unsafe = presence.NewCondition(presence.ConditionUnsafe, "mail", "eu", time.Time{}, "runs could not be followed")

// counts adds counts to the statistics of the last bucket that has ended.
func (y *yard) counts(counts stat.Counts, runs ...time.Duration) {
	y.Helper()
	counted := stat.Stat{Queue: "mail", At: time.Now().Add(-20 * time.Second).Truncate(stat.Fine), Every: stat.Fine, Counts: counts}
	for _, d := range runs {
		counted.Run.Add(d)
	}
	y.ok(stat.Given(y.store).AddStats(y.Context(), presence.NewID(), []stat.Stat{counted}))
}

// TestFiguresAreReadAsTheirMetricsSay prepares one queue per case and reads one metric of the queue.
func TestFiguresAreReadAsTheirMetricsSay(t *testing.T) {
	rate := func(s *sluice.Settings) { s.Rate = sluice.RatePerSecond(2) }
	pause := func(s *sluice.Settings) { s.Paused = true }
	for name, c := range map[string]struct {
		metric string
		make   func(y *yard)
		want   string
	}{
		"jobs that are ready":                {alert.MetricReady, func(y *yard) { y.add(3) }, "3"},
		"none in a paused queue":             {alert.MetricReady, func(y *yard) { y.add(3); y.set(pause) }, "0"},
		"counting stops above the threshold": {alert.MetricReady, func(y *yard) { y.add(1200) }, "1000"},
		"how long the first has been due":    {alert.MetricOldestAge, func(y *yard) { y.add(1); time.Sleep(time.Hour) }, "3600"},
		"how long the rate takes, counted":   {alert.MetricDrainTime, func(y *yard) { y.set(rate); y.add(150); y.count() }, "75"},
		"or looked at":                       {alert.MetricDrainTime, func(y *yard) { y.set(rate); y.add(50) }, "25"},
		"unless that is not known":           {alert.MetricDrainTime, func(y *yard) { y.set(rate); y.add(1200) }, "?"},
		"behind the rate": {alert.MetricPace, func(y *yard) {
			y.set(rate)
			y.add(1)
			time.Sleep(2 * time.Hour)
			y.counts(stat.Counts{Claimed: 720})
		}, "0.1"},
		"no judgement while jobs have just come": {alert.MetricPace, func(y *yard) { y.set(rate); y.add(1); time.Sleep(time.Minute); y.counts(stat.Counts{Claimed: 1}) }, "1"},
		"nobody counts who claims":               {alert.MetricPace, func(y *yard) { y.set(rate); y.add(1); time.Sleep(2 * time.Hour) }, "?"},
		"nothing moves": {alert.MetricStalled, func(y *yard) {
			y.add(2)
			time.Sleep(2 * time.Hour)
			y.counts(stat.Counts{Enqueued: 2})
			y.serves()
		}, "2"},
		"something does": {alert.MetricStalled, func(y *yard) {
			y.add(2)
			time.Sleep(2 * time.Hour)
			y.counts(stat.Counts{Claimed: 2})
			y.serves()
		}, "0"},
		"nobody serves it":            {alert.MetricUnserved, func(y *yard) { y.add(2) }, "2"},
		"somebody does":               {alert.MetricUnserved, func(y *yard) { y.add(2); y.serves() }, "0"},
		"a dispatcher, but no engine": {alert.MetricUnserved, func(y *yard) { y.add(2); y.serves(unsafe) }, "2"},
		"somebody did":                {alert.MetricUnserved, func(y *yard) { y.add(2); y.serves(); time.Sleep(time.Minute) }, "2"},
		"ready while it is paused":    {alert.MetricPausedReady, func(y *yard) { y.add(2); y.set(pause) }, "2"},
		"unless the pause ends":       {alert.MetricPausedReady, func(y *yard) { y.add(2); y.pauseFor(time.Hour) }, "0"},
		"dead letters":                {alert.MetricDead, func(y *yard) { y.add(2); y.ends(2, sluice.EventBury) }, "2"},
		"uncertain jobs":              {alert.MetricUncertain, func(y *yard) { y.add(2); y.ends(1, sluice.EventDoubt) }, "1"},
		"one of four died":            {alert.MetricSuccessRate, func(y *yard) { y.counts(stat.Counts{Completed: 3, Dead: 1, Failed: 9}) }, "0.75"},
		"none ended":                  {alert.MetricSuccessRate, func(y *yard) { y.counts(stat.Counts{Claimed: 3}) }, "1"},
		"nobody counts":               {alert.MetricSuccessRate, func(*yard) {}, "?"},
		"nobody counts who serves it": {alert.MetricSuccessRate, func(y *yard) { y.counts(stat.Counts{Completed: 3, Dead: 1}); y.serves() }, "?"},
		"longer ago than the window":  {alert.MetricSuccessRate, func(y *yard) { y.counts(stat.Counts{Dead: 1}); time.Sleep(2 * time.Hour) }, "1"},
		"dead letters by the second":  {alert.MetricDeadRate, func(y *yard) { y.counts(stat.Counts{Dead: 360}) }, "0.1"},
		"recoveries by the second":    {alert.MetricRecoveredRate, func(y *yard) { y.counts(stat.Counts{Recovered: 7200}) }, "2"},
		"starts that failed":          {alert.MetricStartFailures, func(y *yard) { y.counts(stat.Counts{StartFailed: 3600}) }, "1"},
		"leases that ran out":         {alert.MetricLeaseExpiry, func(y *yard) { y.counts(stat.Counts{Claimed: 10, Recovered: 1}) }, "0.1"},
		"how long jobs run, about":    {alert.MetricRunP95, func(y *yard) { y.counts(stat.Counts{Completed: 1}, 30*time.Second) }, "~30"},
		"nothing ran":                 {alert.MetricRunP95, func(y *yard) { y.counts(stat.Counts{Claimed: 1}) }, "0"},
		"a breaker":                   {alert.MetricBreakerOpen, func(y *yard) { y.serves(broken("mail")) }, "1"},
		"that of another queue":       {alert.MetricBreakerOpen, func(y *yard) { y.serves(broken("other")) }, "0"},
		"trouble":                     {alert.MetricConditions, func(y *yard) { y.serves(unsafe) }, "1"},
		"but not that of breakers":    {alert.MetricConditions, func(y *yard) { y.serves(broken("mail")) }, "0"},
		"trouble beside a breaker":    {alert.MetricConditions, func(y *yard) { y.serves(broken("mail"), unsafe) }, "1"},
		"an engine that upkeep asks":  {alert.MetricConditions, func(y *yard) { y.follows(broken("mail")) }, "1"},
		"while a breaker is open":     {alert.MetricConditions, func(y *yard) { y.serves(broken("mail")); y.follows(broken("mail")) }, "0"},
		"a breaker beside trouble":    {alert.MetricBreakerOpen, func(y *yard) { y.serves(unsafe, broken("mail")) }, "1"},
		"words of a breaker alone": {alert.MetricBreakerOpen, func(y *yard) {
			y.serves(presence.Condition{Kind: presence.ConditionOther, Queue: "mail", Text: "the breaker is open"})
		}, "0"},
		"a queue without a limit":      {alert.MetricWaiting, func(y *yard) { y.add(3) }, "0"},
		"a queue that is half full":    {alert.MetricWaiting, func(y *yard) { y.holds(6); y.add(3) }, "0.5"},
		"queues":                       {alert.MetricQueues, func(y *yard) { y.takes(4) }, "0.25"},
		"what the store does not tell": {alert.MetricWAL, func(*yard) {}, "?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{NoStatistics: strings.HasPrefix(name, "nobody counts")})
				y := &yard{t, store, sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})}
				_, err := y.client.EnsureQueue(t.Context(), "mail", sluice.DefaultSettings(), ada)
				y.ok(err)
				c.make(y)
				if got := y.figure(c.metric); got != c.want && (c.want[0] != '~' || !near(got, c.want[1:])) {
					t.Errorf("%s is %s, want %s", c.metric, got, c.want)
				}
			})
		})
	}
}

// TestMetricsThatNeedStatisticsAreThoseThatSaySo reads every metric of a queue in a store without statistics.
// TestLevelsAreKeptEachMinuteWhileJobsAreReady looks three times: the look at which nothing waits any more says so once.
func TestLevelsAreKeptEachMinuteWhileJobsAreReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		y := &yard{t, store, sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})}
		defer func() { y.ok(store.Close()) }()
		watcher := alert.New(store, alert.Options{Logger: quiet})
		looks := func() (levels []stat.Level) {
			_, err := watcher.Evaluate(t.Context())
			y.ok(err)
			found, err := stat.Read(t.Context(), store, stat.Filter{Levels: true, Every: stat.Fine, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Second)})
			y.ok(err)
			for _, s := range found {
				if s.Level != nil {
					levels = append(levels, *s.Level)
				}
			}
			return levels
		}
		y.add(1200)
		time.Sleep(30 * time.Second)
		first := stat.Level{Ready: 1000, OldestSeconds: 30}
		if got := looks(); len(got) != 1 || got[0].OldestSeconds != 30 || got[0].Ready < 1000 {
			t.Fatalf("levels %v, want %v", got, first)
		}
		time.Sleep(15 * time.Second)
		if got := looks(); len(got) != 1 {
			t.Errorf("levels %v, want none of a second look in the minute", got)
		}
		_, err := forecast.Recount(t.Context(), store)
		y.ok(err)
		time.Sleep(45 * time.Second)
		if got := looks(); len(got) != 2 || got[1] != (stat.Level{Ready: 1200, OldestSeconds: 90}) {
			t.Errorf("levels %v, want 1,200 ready jobs, as the forecast counts them", got)
		}
		y.ends(1200, sluice.EventComplete)
		for range 3 {
			time.Sleep(time.Minute)
			if got := looks(); len(got) != 3 || got[2] != (stat.Level{}) {
				t.Errorf("levels %v, want one of nothing at the end", got)
			}
		}
	})
}

// TestEachLookCountsTheTenantsAtTheirConcurrency has a tenant with one place work for three minutes.
func TestEachLookCountsTheTenantsAtTheirConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		y := &yard{t, store, sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})}
		defer func() { y.ok(store.Close()) }()
		y.add(1)
		y.set(func(s *sluice.Settings) { s.Fair, s.TenantConcurrency = true, 1 })
		for _, tenant := range []string{"acme", "acme", "beta"} {
			_, err := y.client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}})
			y.ok(err)
		}
		y.ends(3, "")
		watcher := alert.New(store, alert.Options{Logger: quiet})
		for range 3 {
			time.Sleep(time.Minute)
			_, err := watcher.Evaluate(t.Context())
			y.ok(err)
		}
		time.Sleep(10 * time.Second) // until the last slot is over
		for tenant, want := range map[string]int64{"acme": 3, "beta": 3, "nobody": 0} {
			found, err := stat.Over(t.Context(), store, stat.Filter{Tenant: tenant, From: time.Now().Add(-time.Hour)})
			y.ok(err)
			looks := int64(0)
			for _, slot := range found.Slots {
				if slot.Level != nil {
					looks += slot.Level.Full
				}
			}
			if looks != want {
				t.Errorf("%s was at its concurrency at %d looks, want %d", tenant, looks, want)
			}
		}
	})
}

func TestMetricsThatNeedStatisticsAreThoseThatSaySo(t *testing.T) {
	t.Parallel()
	for _, metric := range alert.Metrics() {
		if !metric.OfQueue {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(memory.Options{NoStatistics: true})
			y := &yard{t, store, sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})}
			settings := sluice.DefaultSettings()
			settings.Rate = sluice.RatePerSecond(2)
			_, err := y.client.EnsureQueue(t.Context(), "mail", settings, ada)
			y.ok(err)
			y.add(1)
			time.Sleep(2 * time.Hour)
			if unknown := y.figure(metric.Name) == "?"; unknown != metric.NeedsStatistics() {
				t.Errorf("%s: not known where nobody counts: %v, and it says %v", metric.Name, unknown, metric.NeedsStatistics())
			}
		})
	}
}

// near allows for the width of a histogram's bucket.
func near(got, want string) bool {
	var a, b float64
	_, err := fmt.Sscan(got+" "+want, &a, &b)
	return err == nil && a > 0.8*b && a < 1.2*b
}

// holds limits the waiting jobs of the queue.
func (y *yard) holds(n int) {
	y.Helper()
	_, err := y.client.ChangeSettings(y.Context(), "mail", sluice.Act{By: "ada", Reason: "test"}, func(s *sluice.Settings) error {
		s.MaxWaiting = n
		return nil
	})
	y.ok(err)
}

// takes limits how many queues the store takes.
func (y *yard) takes(n int) {
	y.Helper()
	_, err := admission.Save(y.Context(), y.store, admission.Policy{MaxQueues: n}, sluice.Act{By: "ada", Reason: "test"})
	y.ok(err)
}

func (y *yard) count() {
	y.Helper()
	_, err := forecast.Recount(y.Context(), y.store)
	y.ok(err)
}

func (y *yard) pauseFor(d time.Duration) {
	y.Helper()
	_, err := y.client.PauseFor(y.Context(), "mail", d, ada)
	y.ok(err)
}

// figure reads a metric by a rule with a window of 1 h. The result is ? if the metric is unknown.
func (y *yard) figure(metric string) string {
	y.Helper()
	_, _, err := alert.SetRule(y.Context(), y.store, "mine", "", ada, func(r *alert.Rule) error {
		r.Metric, r.Threshold, r.Window = metric, 100, time.Hour
		return nil
	})
	y.ok(err)
	for _, preset := range alert.Presets() { // so that only the rule above limits how far jobs are counted
		_, _, err := alert.SetRule(y.Context(), y.store, preset.Name, "", ada, func(r *alert.Rule) error { r.Disabled = true; return nil })
		y.ok(err)
	}
	found, err := alert.New(y.store, alert.Options{Logger: quiet}).Read(y.Context())
	y.ok(err)
	if len(found) != 1 || found[0].Err != nil {
		y.Fatalf("found %+v", found)
	}
	if found[0].Reading.Unknown {
		return "?"
	}
	return fmt.Sprintf("%.6g", found[0].Reading.Value)
}
