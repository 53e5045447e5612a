package move

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/tenancy"
)

// world is a system with rows in every table.
type world struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
	random *rand.Rand
	ids    []sluice.ID
}

var queues = []string{"plain", "limited", "by-tenant", "audited"}

// populate fills a store with random calls of its verbs.
func populate(t *testing.T, store sluice.Store, random *rand.Rand) {
	t.Helper()
	w := &world{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), random: random}
	w.settings()
	w.alerts()
	w.mustHave()
	w.batches()
	for range 12 {
		w.enqueue(40)
		for _, queue := range queues {
			w.work(queue)
		}
		w.acts()
	}
	w.add("plain", sluice.EnqueueOptions{Hold: "after the last act, so that it stays"})
	// Jobs that are dispatched, uncertain or held by a process that died stay in their state.
	_, err := forecast.Recount(t.Context(), store)
	w.ok(err)
	_, err = presence.Given(store).Heartbeat(t.Context(), presence.Holder{ID: "h:1:x", Role: presence.RoleWorker, Queues: queues})
	w.ok(err)
	_, err = presence.Given(store).Elect(t.Context(), "h:1:x", []string{presence.TaskUpkeep}, time.Minute)
	w.ok(err)
	w.count(time.Now().Add(-10 * time.Minute))
	_, err = stat.Given(store).FoldStats(t.Context(), 100)
	w.ok(err)
	w.count(time.Now())
}

// batches makes a batch within another one, with jobs that the rest of the world ends. Then it pauses both batches.
func (w *world) batches() {
	w.Helper()
	ctx := w.Context()
	outer, err := batch.Open(ctx, w.store, batch.Batch{Name: "outer «1»", Callbacks: batch.Callbacks{OnComplete: &batch.Callback{Queue: "plain"}}}, by("batch"))
	w.ok(err)
	inner, err := batch.Open(ctx, w.store, batch.Batch{Parent: outer.ID}, by("batch"))
	w.ok(err)
	for range 20 {
		job := sluice.NewJob{Queue: "plain", Payload: []byte("{}"), EnqueueOptions: sluice.EnqueueOptions{Batch: inner.ID}}
		_, err := w.client.Enqueue(ctx, job)
		w.ok(err)
	}
	w.ok(batch.Close(ctx, w.store, inner.ID, by("batch")))
	w.ok(batch.Given(w.store).PauseBatch(ctx, outer.ID, "for the move", by("batch")))
}

// count adds statistics of one bucket.
func (w *world) count(at time.Time) {
	w.Helper()
	s := stat.Stat{Queue: queues[0], At: at.Truncate(stat.Fine), Every: stat.Fine, Counts: stat.Counts{Enqueued: 3, StartFailed: 1}}
	s.Total.Add(time.Minute)
	tenant := s
	tenant.Tenant = "acme «1»"
	w.ok(stat.Given(w.store).AddStats(w.Context(), "h:1:x", []stat.Stat{s, tenant}))
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func by(reason string) sluice.Act {
	return sluice.Act{By: "ada «1»", Reason: reason, ID: sluice.NewID()}
}

func (w *world) settings() {
	ctx := w.Context()
	for _, queue := range queues {
		settings := sluice.DefaultSettings()
		switch queue {
		case "limited":
			settings.Rate, settings.Burst, settings.Concurrency = sluice.RatePerSecond(1000), 500, 40
			settings.PayloadSchema, settings.Limits = "", "bank,host"
		case "by-tenant":
			settings.Fair, settings.TenantConcurrency, settings.TenantRate, settings.TenantBurst = true, 15, sluice.RatePerSecond(1000.5), 400
		case "audited":
			settings.Audit, settings.Engine, settings.RunResults = sluice.AuditFull, "temporal", true
		}
		_, err := w.client.EnsureQueue(ctx, queue, settings, by("first"))
		w.ok(err)
	}
	_, err := admission.Save(ctx, w.store, admission.Policy{MaxQueues: 123, Declared: true}, by("policy"))
	w.ok(err)
	_, err = deadletter.Save(ctx, w.store, deadletter.Note{Fingerprint: "9ac1f00d", Text: "DNS", Owner: "team-money", ResolvedAt: time.Unix(1e9, 0)}, by("a note"))
	w.ok(err)
	_, _, err = access.Create(ctx, w.store, access.Token{Name: "laptop", Role: access.RoleReader}, by("a laptop"))
	w.ok(err)
	_, err = limit.Change(ctx, w.store, "bank", by("the contract"), func(l *limit.Limit) error {
		l.Rate, l.Burst, l.Concurrency, l.ClosedUntil = sluice.RatePerSecond(1000), 500, 1000, time.Now().Add(-time.Hour)
		return nil
	})
	w.ok(err)
	_, err = limit.Change(ctx, w.store, "host", by("be polite"), func(l *limit.Limit) error {
		l.Rate, l.Burst, l.Concurrency, l.PerKey = sluice.RatePerSecond(1000), 500, 1000, true
		return nil
	})
	w.ok(err)
	w.ok(limit.CloseKey(ctx, w.store, "host", "closed.example", time.Hour, by("it answers 429")))
	_, err = changes.For(ctx, w.client, "plain", time.Hour, by("for a while"), func(s *sluice.Settings) error {
		s.Backoff.Base, s.PausedUntil = 1500*time.Millisecond, time.Now().Add(-time.Hour)
		return nil
	})
	w.ok(err)
	_, err = tenancy.AddTier(ctx, w.store, "PRO", by("tier"))
	w.ok(err)
	_, err = tenancy.SetTier(ctx, w.store, "acme", "PRO", by("tier"))
	w.ok(err)
	_, err = tenancy.ChangeLimits(ctx, w.store, tenancy.Limits{Tier: "PRO"}, by("limits"), func(l *tenancy.Limits) error {
		weight := 3
		l.Weight = &weight
		return nil
	})
	w.ok(err)
	_, err = tenancy.Pause(ctx, w.store, "plain", "sleepy", time.Hour, by("hold"))
	w.ok(err)
}

// alerts makes a rule, an alert that fires, a silence, and a receiver that was not notified.
func (w *world) alerts() {
	ctx := w.Context()
	_, rule, err := alert.SetRule(ctx, w.store, "dead-letters", "plain", by("fewer"), func(r *alert.Rule) error {
		r.Threshold = 2.5
		return nil
	})
	w.ok(err)
	_, err = alert.StartSilence(ctx, w.store, alert.Silence{Rule: "clock", During: time.Hour}, by("it is known"))
	w.ok(err)
	err = alert.Given(w.store).SaveReceiver(ctx, "hook")
	w.ok(err)
	now := time.Now().UTC().Truncate(time.Microsecond)
	firing := alert.Alert{
		Rule: rule.Name, Queue: "plain", State: alert.Firing, Since: now, PendingSince: now, FiredAt: now, Told: true, Value: 3, Threshold: 2.5,
		Severity: rule.Severity, At: now,
	}
	message := firing.Message(rule, alert.Fires, now)
	w.ok(alert.Given(w.store).SaveAlerts(ctx, alert.Evaluation{
		Alerts: []alert.Alert{firing}, Messages: []alert.Message{message}, Entries: []sluice.AuditEntry{message.Entry("upkeep")},
	}))
}

// mustHave makes the rows that the random calls may miss.
func (w *world) mustHave() {
	ctx := w.Context()
	w.add("plain", sluice.EnqueueOptions{Key: "window", KeyScope: sluice.ForWindow, KeyWindow: time.Hour, Priority: 1})
	w.add("plain", sluice.EnqueueOptions{Key: "ever", KeyScope: sluice.ForEver, Priority: 1})
	w.add("audited", sluice.EnqueueOptions{Key: "k", Priority: 1})
	c := w.claim("audited", 1)[0]
	ref := func(c *sluice.Claim) []engine.Intent {
		return []engine.Intent{{ID: c.ID, Token: c.Token, Ref: "run-" + c.ID.String(), Engine: "temporal/ns", Lease: time.Minute}}
	}
	_, err := engine.Given(w.store).RecordIntent(ctx, ref(c))
	w.ok(err)
	w.settle(c, sluice.EventDispatch)
	w.add("audited", sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce, Hold: "check it"}) // the job is held behind its twin, which runs
	w.add("plain", sluice.EnqueueOptions{Hold: "on probation"})
	stray := w.add("audited", sluice.EnqueueOptions{Priority: 1})
	c = w.claim("audited", 1)[0]
	if c.ID != stray {
		w.Fatalf("claimed %s", c.ID)
	}
	_, err = engine.Given(w.store).RecordIntent(ctx, ref(c))
	w.ok(err)
	w.ok(w.client.Cancel(ctx, []sluice.ID{stray}, by("never mind")))
	w.ok(w.client.Requeue(ctx, []sluice.ID{stray}, by("after all"))) // the job waits for its run
	w.ok(w.client.Terminate(ctx, []sluice.ID{stray}, by("it hangs")))
	_, err = operation.Start(ctx, w.store, operation.Operation{Kind: operation.KindRequeue, Query: search.Query{Queue: "plain"}, Rate: sluice.RatePerSecond(20)}, by("redrive"))
	w.ok(err)
	_, err = schedule.Set(ctx, w.store, "nightly", schedule.Definition{Queue: "plain", Cron: "30 2 * * *", Zone: "Europe/Berlin"}, by("every night"))
	w.ok(err)
	_, err = schedule.Trigger(ctx, w.store, "nightly", by("now"), nil)
	w.ok(err)
	dead := w.add("plain", sluice.EnqueueOptions{Priority: 1, MaxAttempts: 1})
	w.add("plain", sluice.EnqueueOptions{After: []sluice.ID{dead}, AfterFailure: sluice.FailureWaits})
	for _, c := range w.claim("plain", 3) {
		if c.ID == dead {
			w.settle(c, sluice.EventBury)
			continue
		}
		w.ok(w.store.SaveCheckpoint(ctx, c.ID, c.Token, []byte(`{"page": 7}`)))
		w.settle(c, sluice.EventRetry)
	}
	w.add("plain", sluice.EnqueueOptions{DueAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)})
}

func (w *world) add(queue string, options sluice.EnqueueOptions) sluice.ID {
	w.Helper()
	receipt, err := w.client.Enqueue(w.Context(), sluice.NewJob{Queue: queue, Payload: w.payload(), EnqueueOptions: options})
	w.ok(err)
	if !receipt.Duplicate {
		w.ids = append(w.ids, receipt.ID)
	}
	return receipt.ID
}

func (w *world) payload() json.RawMessage {
	texts := []string{`{"b":1, "a":1e3, "a":2}`, `12345678901234567890123`, `"\u0000 ü 漢字 😀"`, `[[[[]]]]`, `null`, `"` + strings.Repeat("x", w.random.IntN(3000)) + `"`}
	return json.RawMessage(texts[w.random.IntN(len(texts))])
}

func (w *world) enqueue(n int) {
	for range n {
		queue := queues[w.random.IntN(len(queues))]
		options := sluice.EnqueueOptions{Priority: 1 + w.random.IntN(10), Tenant: []string{"", "acme", "beta", "sleepy"}[w.random.IntN(4)]}
		if w.random.IntN(4) == 0 {
			options.Delay = time.Duration(w.random.IntN(3)) * time.Hour
		}
		if w.random.IntN(4) == 0 {
			options.Labels = map[string]string{"z": "ü", "a": fmt.Sprint(w.random.IntN(3))}
		}
		if w.random.IntN(4) == 0 {
			options.Key = fmt.Sprint(w.random.IntN(20))
			if rule := []sluice.OnDuplicate{sluice.Keep, sluice.Replace, sluice.Coalesce}[w.random.IntN(3)]; rule != sluice.Keep {
				options.Key, options.OnDuplicate = options.Tenant+" "+options.Key, rule // it changes jobs of its own tenant alone
			}
		}
		if w.random.IntN(6) == 0 {
			options.ExpiresAt = time.Now().Add(5 * time.Hour)
		}
		if w.random.IntN(6) == 0 {
			options.Timeout = time.Duration(1+w.random.IntN(1000)) * time.Second
		}
		if w.random.IntN(3) == 0 {
			options.LimitKey = []string{"a.example", "closed.example"}[w.random.IntN(2)]
		}
		if w.random.IntN(4) == 0 {
			options.Cost = 1 + w.random.IntN(5)
		}
		if len(w.ids) > 2 && w.random.IntN(6) == 0 {
			options.After = []sluice.ID{w.ids[w.random.IntN(len(w.ids))], w.ids[w.random.IntN(len(w.ids))]}
			options.AfterFailure = []sluice.AfterFailure{sluice.FailureCancels, sluice.FailureRuns, sluice.FailureWaits}[w.random.IntN(3)]
		} else if w.random.IntN(4) == 0 {
			options.OrderKey = fmt.Sprint(w.random.IntN(4))
		}
		w.add(queue, options)
	}
}

func (w *world) claim(queue string, limit int) []*sluice.Claim {
	w.Helper()
	request := sluice.ClaimRequest{Queue: queue, Limit: limit, Holder: "host:1:x", Lease: time.Millisecond, Token: sluice.NewToken()}
	if queue == "audited" {
		request.Engine = "temporal"
	}
	claimed, err := w.store.Claim(w.Context(), request)
	w.ok(err)
	return claimed.Jobs
}

func (w *world) settle(c *sluice.Claim, event sluice.Event) {
	w.Helper()
	errs, err := w.store.Settle(w.Context(), []sluice.Settlement{{
		ID: c.ID, Token: c.Token, Holder: c.Holder, Event: event, Error: "no route\nto “bank”", Stack: "main.go:1", Result: []byte(`{"ok": 1.50}`),
		Reason: "so it is", Delay: time.Duration(w.random.IntN(2)) * time.Minute,
	}})
	w.ok(err)
	w.ok(errs[0])
}

func (w *world) work(queue string) {
	events := []sluice.Event{
		sluice.EventComplete, sluice.EventComplete, sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventBury,
		sluice.EventDispatch, sluice.EventDoubt, "",
	}
	for _, c := range w.claim(queue, 8) {
		event := events[w.random.IntN(len(events))]
		switch {
		case event == "": // the holder died
			time.Sleep(time.Millisecond)
			continue
		case event == sluice.EventDispatch && queue != "audited", event == sluice.EventDoubt && w.random.IntN(3) > 0:
			event = sluice.EventComplete
		case event == sluice.EventDispatch:
			_, err := engine.Given(w.store).RecordIntent(w.Context(), []engine.Intent{{ID: c.ID, Token: c.Token, Ref: "run-" + c.ID.String(), Engine: "temporal", Lease: time.Millisecond}})
			w.ok(err)
		}
		w.settle(c, event)
	}
}

// acts makes persons and upkeep act on random jobs. The store may refuse an act that a job's state does not allow.
func (w *world) acts() {
	ctx := w.Context()
	some := func(n int) []sluice.ID {
		ids := make([]sluice.ID, n)
		for i := range ids {
			ids[i] = w.ids[w.random.IntN(len(w.ids))]
		}
		slices.SortFunc(ids, func(a, b sluice.ID) int { return strings.Compare(a.String(), b.String()) })
		return slices.Compact(ids)
	}
	_, err := w.store.Cancel(ctx, some(3), by("cancel"))
	w.ok(err)
	_, err = w.store.Requeue(ctx, some(20), by("again"))
	w.ok(err)
	_, err = w.store.Reschedule(ctx, some(3), time.Now().Add(time.Minute), by("later"))
	w.ok(err)
	_, err = w.store.Recover(ctx, queues[w.random.IntN(len(queues))], 3, "upkeep")
	w.ok(err)
}

// copyOf copies a file, to see how the system would have gone on there.
func copyOf(t *testing.T, store sluice.Store) sluice.Store {
	t.Helper()
	address := newFile(t)
	var from string
	if err := store.(*sqlite.Store).DB().QueryRow("select file from pragma_database_list where name = 'main'").Scan(&from); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", from) // a Store would refuse this statement
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("vacuum into ?", strings.TrimPrefix(address, "sqlite:")); err != nil {
		t.Fatal(err)
	}
	return open(t, address)
}

// goesOnAs checks that two stores go on in the same way. The same jobs must end, and the jobs of an order in the same
// order.
func goesOnAs(t *testing.T, moved, before sluice.Store) {
	t.Helper()
	want, got := goesOn(t, before), goesOn(t, moved)
	if len(want) < 10 {
		t.Errorf("only %d orders are compared", len(want))
	}
	for name, ids := range want {
		if !slices.Equal(ids, got[name]) {
			t.Errorf("%s: %v were done, before the move it was %v", name, got[name], ids)
		}
	}
}

// goesOn ends everything that can end, and lists the jobs. Jobs with an order key are listed in order, and the other
// jobs are sorted.
func goesOn(t *testing.T, store sluice.Store) map[string][]sluice.ID {
	t.Helper()
	w := &world{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), random: rand.New(rand.NewPCG(0, 0))}
	ctx := t.Context()
	w.ok(tenancy.Resume(ctx, w.store, "plain", "sleepy", by("on")))
	w.ok(limit.OpenKey(ctx, w.store, "host", "closed.example", by("it answers")))
	_, err := store.Repair(ctx, "upkeep") // lets in the jobs that waited for their limit key during the move
	w.ok(err)
	for _, queue := range queues {
		away, err := engine.Given(store).Dispatches(ctx, engine.DispatchFilter{Queue: queue})
		w.ok(err)
		for _, c := range away {
			if c.Ref == "" || c.Engine == "" {
				t.Errorf("job %s has the run %q at %q", c.ID, c.Ref, c.Engine)
			}
			w.settle(c, sluice.EventComplete)
		}
		_, err = store.Recover(ctx, queue, 10_000, "upkeep")
		w.ok(err)
	}
	done := w.drain()
	receipt, err := w.client.Enqueue(ctx, sluice.NewJob{Queue: "plain", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Key: "ever"}})
	if err != nil || !receipt.Duplicate {
		t.Errorf("a key that was taken for ever: %+v, %v", receipt, err)
	}
	entries, err := store.Audit(ctx, sluice.AuditFilter{Limit: 1})
	w.ok(err)
	w.ok(store.AppendAudit(ctx, []sluice.AuditEntry{{Object: audit.ObjectQueue, Name: "plain", Event: audit.EventBatch, Actor: "test"}}))
	next, err := store.Audit(ctx, sluice.AuditFilter{Limit: 1})
	w.ok(err)
	if next[0].Seq <= entries[0].Seq {
		t.Errorf("the audit goes on with %d after %d", next[0].Seq, entries[0].Seq)
	}
	for name, ids := range done {
		if strings.HasSuffix(name, "/") {
			slices.SortFunc(ids, func(a, b sluice.ID) int { return strings.Compare(a.String(), b.String()) })
		}
	}
	return done
}

// drain claims and completes jobs until none is left to claim. It lists the completed jobs by queue and order key.
func (w *world) drain() map[string][]sluice.ID {
	w.Helper()
	ended := make(map[string][]sluice.ID)
	seen := make(map[sluice.ID]bool)
	// On a busy machine, a job before the low-water mark is found by a later claim only.
	for deadline, idle := time.Now().Add(10*time.Minute), 0; idle < 3 || w.ready() && time.Now().Before(deadline); {
		got := 0
		for _, queue := range queues {
			request := sluice.ClaimRequest{Queue: queue, Limit: 50, Holder: "host:2:y", Lease: time.Minute, Token: sluice.NewToken(), ClaimAhead: 100 * time.Hour}
			if queue == "audited" {
				request.Engine = "temporal"
			}
			claimed, err := w.store.Claim(w.Context(), request)
			w.ok(err)
			if queue == "limited" && len(claimed.Jobs) > 40 {
				w.Errorf("%d jobs in flight, more than the limit", len(claimed.Jobs))
			}
			tenants := make(map[string]int)
			for _, c := range claimed.Jobs {
				if tenants[c.Tenant]++; queue == "by-tenant" && c.Tenant != "" && tenants[c.Tenant] > 15 {
					w.Errorf("%d jobs of tenant %s in flight, more than its concurrency", tenants[c.Tenant], c.Tenant)
				}
				if seen[c.ID] {
					w.Errorf("job %s was claimed twice", c.ID)
				}
				seen[c.ID] = true
				order := queue + "/" + c.OrderKey
				ended[order] = append(ended[order], c.ID)
				w.settle(c, sluice.EventComplete)
			}
			got += len(claimed.Jobs)
		}
		if idle++; got > 0 {
			idle = 0
		}
		if idle < 3 && time.Now().After(deadline) {
			w.Fatal("not drained after a minute")
		}
	}
	for _, queue := range queues {
		depth, err := w.store.Depth(w.Context(), queue, sluice.DepthLimit)
		w.ok(err)
		if depth.Ready > 0 || depth.Claimed > 0 || depth.Scheduled > 1 { // the job of the year 9999
			w.Errorf("left in %s: %+v", queue, depth)
		}
	}
	return ended
}

// ready reports whether a job is left to claim.
func (w *world) ready() bool {
	w.Helper()
	for _, queue := range queues {
		depth, err := w.store.Depth(w.Context(), queue, sluice.DepthLimit)
		w.ok(err)
		if depth.Ready > 0 {
			return true
		}
	}
	return false
}
