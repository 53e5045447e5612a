package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	group "github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/store/postgres"
)

// ranNode is a step of a plan that has run, with the rows that it read.
type ranNode struct {
	Type            string    `json:"Node Type"`
	Rows            float64   `json:"Actual Rows"`
	Loops           float64   `json:"Actual Loops"`
	RemovedByFilter float64   `json:"Rows Removed by Filter"`
	RemovedByJoin   float64   `json:"Rows Removed by Join Filter"`
	Plans           []ranNode `json:"Plans"`
}

// most returns the step of a plan that read the most rows, and their number.
func (n ranNode) most() (step string, rows float64) {
	step, rows = n.Type, (n.Rows+n.RemovedByFilter+n.RemovedByJoin)*n.Loops
	for _, below := range n.Plans {
		if otherStep, other := below.most(); other > rows {
			step, rows = otherStep, other
		}
	}
	return step, rows
}

// costly collects the statements that read more rows than the limit.
type costly struct {
	mu    sync.Mutex
	limit float64
	read  int
	found []string
}

func (c *costly) notice(_ *pgconn.PgConn, notice *pgconn.Notice) {
	_, body, is := strings.Cut(notice.Message, "plan:\n")
	if !is {
		return
	}
	var ran struct {
		Query string `json:"Query Text"`
		Plan  ranNode
	}
	err := json.Unmarshal([]byte(body), &ran)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.found = append(c.found, err.Error())
	}
	c.read++
	if step, rows := ran.Plan.most(); rows > c.limit {
		text, _, _ := strings.Cut(ran.Query, "\n")
		c.found = append(c.found, fmt.Sprintf("%.0f rows in a %s: %s", rows, step, text))
	}
}

// openExplained opens a store that keeps its plans. The server sends each plan after the plan has run.
func openExplained(t *testing.T, seen *costly) *postgres.Store {
	t.Helper()
	config, err := pgxpool.ParseConfig(migrated.Copy(t) + "&pool_max_conns=2&session_preload_libraries=auto_explain&auto_explain.log_min_duration=0" +
		"&auto_explain.log_analyze=on&auto_explain.log_timing=off&auto_explain.log_format=json&auto_explain.log_level=notice&client_min_messages=notice")
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.OnNotice = seen.notice
	store, err := postgres.OpenConfig(t.Context(), config, postgres.Options{CallTimeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// TestBatchesCostAsMuchAsTheirJobs checks plans that the server made without knowing the size of a batch. A nested loop
// over two lists of a batch would read each pair.
func TestBatchesCostAsMuchAsTheirJobs(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"without statistics": "select", "with those of empty tables": "analyze"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBatches(t, before)
		})
	}
}

func testBatches(t *testing.T, before string) {
	t.Helper()
	const n = 160
	seen := &costly{limit: 20 * n}
	store := openExplained(t, seen)
	runPlain(t, store, before)
	b := batches{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{Logger: slog.New(slog.DiscardHandler)}), n: n}
	b.enqueue("plain", nil)
	for _, event := range []sluice.Event{sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventBury, sluice.EventComplete} {
		b.enqueue("plain", nil)
		b.settle(b.claim("plain"), event)
	}
	b.enqueue("timed", func(_ int, o *sluice.EnqueueOptions) { o.Timeout = time.Minute })
	timed := b.claim("timed")
	b.report(timed)
	b.settle(timed[:b.n/2], sluice.EventComplete)
	b.report(timed) // half of the jobs have ended
	b.enqueue("keyed", func(i int, o *sluice.EnqueueOptions) { o.Key = fmt.Sprint("key ", i) })
	b.enqueue("keyed", func(i int, o *sluice.EnqueueOptions) { o.Key = fmt.Sprint("key ", i) })
	b.settle(b.claim("keyed"), sluice.EventComplete)
	b.enqueue("ordered", func(i int, o *sluice.EnqueueOptions) { o.OrderKey = fmt.Sprint("order ", i%(n/2)) })
	b.settle(b.claim("ordered"), sluice.EventComplete)
	b.settle(b.claim("ordered"), sluice.EventComplete)
	first := b.enqueue("named", func(i int, o *sluice.EnqueueOptions) { o.ID = sluice.NewID() })
	b.enqueue("later", func(i int, o *sluice.EnqueueOptions) { o.After = []sluice.ID{first[i].ID} })
	b.settle(b.claim("named"), sluice.EventComplete)
	b.settle(b.claim("later"), sluice.EventComplete)
	first = b.enqueue("named", func(_ int, o *sluice.EnqueueOptions) { o.ID = sluice.NewID() })
	b.fanIn(first)
	b.settle(b.claim("named"), sluice.EventComplete)
	b.settle(b.claim("last"), sluice.EventComplete)
	first = b.enqueue("named", func(_ int, o *sluice.EnqueueOptions) { o.ID = sluice.NewID() })
	b.enqueue("later", func(i int, o *sluice.EnqueueOptions) { o.After = []sluice.ID{first[i].ID, first[(i+1)%n].ID} })
	b.settle(b.claim("named"), sluice.EventBury)
	b.enqueue("held", func(i int, o *sluice.EnqueueOptions) { o.Hold, o.Key = "wait", fmt.Sprint("key ", i) })
	b.release("held")
	b.settle(b.claim("held"), sluice.EventComplete)
	b.cancel(b.enqueue("held", func(_ int, o *sluice.EnqueueOptions) { o.Hold = "wait" }))
	groups := b.openGroups()
	b.enqueue("grouped", func(i int, o *sluice.EnqueueOptions) { o.Batch = groups[i] })
	b.settle(b.claim("grouped"), sluice.EventComplete)
	b.enqueue("grouped", func(_ int, o *sluice.EnqueueOptions) { o.Batch = groups[0] })
	b.settle(b.claim("grouped"), sluice.EventComplete)
	b.advance(groups)
	b.ensure("fair", func(s *sluice.Settings) { s.Fair, s.TenantConcurrency = true, 2 })
	b.enqueue("fair", func(i int, o *sluice.EnqueueOptions) { o.Tenant = fmt.Sprint("tenant ", i) })
	b.settle(b.claim("fair"), sluice.EventComplete)
	b.perKey("host")
	b.ensure("hosts", func(s *sluice.Settings) { s.Limits = "host" })
	b.enqueue("hosts", func(i int, o *sluice.EnqueueOptions) { o.LimitKey = fmt.Sprint("host ", i%(n/2)) })
	b.settle(b.claim("hosts"), sluice.EventComplete) // the other half is parked
	b.settle(b.claim("hosts"), sluice.EventComplete)
	b.ensure("fair-hosts", func(s *sluice.Settings) { s.Limits, s.Fair = "host", true })
	b.enqueue("fair-hosts", func(i int, o *sluice.EnqueueOptions) {
		o.Tenant, o.LimitKey = fmt.Sprint("tenant ", i), fmt.Sprint("fair ", i%(n/2))
	})
	b.settle(b.claim("fair-hosts"), sluice.EventComplete)
	b.costly("model")
	b.ensure("answers", func(s *sluice.Settings) { s.Limits = "model" })
	b.enqueue("answers", func(i int, o *sluice.EnqueueOptions) { o.Cost = 1 + i })
	b.settle(b.claim("answers"), sluice.EventComplete)
	b.ensure("engine", func(s *sluice.Settings) { s.Engine = "temporal" })
	b.enqueue("engine", nil)
	b.dispatch()
	b.fire(schedule.Skip)
	b.fire(schedule.QueueAll)
	if _, err := store.Prune(t.Context(), "", n); err != nil {
		t.Fatal(err)
	}
	if seen.read < 50 {
		t.Errorf("the server sent %d plans", seen.read)
	}
	slices.Sort(seen.found)
	for _, found := range slices.Compact(seen.found) {
		t.Error(found)
	}
}

// batches calls a store with n jobs per call.
type batches struct {
	*testing.T
	store  *postgres.Store
	client *sluice.Client
	n      int
}

func (b batches) ensure(name string, change func(*sluice.Settings)) {
	b.Helper()
	settings := sluice.DefaultSettings()
	change(&settings)
	if _, err := b.client.EnsureQueue(b.Context(), name, settings, sluice.Act{By: "test"}); err != nil {
		b.Fatal(err)
	}
}

func (b batches) enqueue(queue string, with func(i int, o *sluice.EnqueueOptions)) []sluice.Receipt {
	b.Helper()
	jobs := make([]sluice.NewJob, b.n)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: queue, Payload: json.RawMessage("{}")}
		if with != nil {
			with(i, &jobs[i].EnqueueOptions)
		}
	}
	receipts, err := b.client.EnqueueMany(b.Context(), jobs)
	if err != nil {
		b.Fatal(err)
	}
	return receipts
}

// openGroups opens n batches within one batch, each with a callback.
func (b batches) openGroups() (ids []sluice.ID) {
	b.Helper()
	outer := group.Batch{ID: sluice.NewID()}
	for _, one := range append([]group.Batch{outer}, make([]group.Batch, b.n)...) {
		if one.ID.IsZero() {
			one.Parent, one.OnComplete = outer.ID, &group.Callback{Queue: "calls"}
		}
		opened, err := group.Open(b.Context(), b.store, one, importer)
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, opened.ID)
	}
	return ids[1:]
}

// advance closes batches, and advances all of them in one call.
func (b batches) advance(ids []sluice.ID) {
	b.Helper()
	for _, id := range ids {
		if err := group.Close(b.Context(), b.store, id, importer); err != nil {
			b.Fatal(err)
		}
	}
	out, err := b.store.AdvanceBatches(b.Context(), 10*b.n)
	if err != nil || out.Callbacks != b.n {
		b.Fatalf("advanced %+v: %v", out, err)
	}
}

// perKey makes a limit with concurrency 1 for each limit key.
func (b batches) perKey(name string) {
	b.Helper()
	_, err := limit.Change(b.Context(), b.store, name, importer, func(l *limit.Limit) error {
		l.Concurrency, l.PerKey = 1, true
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// costly makes a limit that counts costs.
func (b batches) costly(name string) {
	b.Helper()
	_, err := limit.Change(b.Context(), b.store, name, importer, func(l *limit.Limit) error {
		l.Concurrency, l.ByCost = limit.MaxFigure, true
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// fanIn enqueues a job that runs after all other jobs.
func (b batches) fanIn(first []sluice.Receipt) {
	b.Helper()
	last := sluice.NewJob{Queue: "last", Payload: json.RawMessage("{}")}
	for _, r := range first {
		last.After = append(last.After, r.ID)
	}
	if _, err := b.client.Enqueue(b.Context(), last); err != nil {
		b.Fatal(err)
	}
}

func (b batches) claim(queue string) []*sluice.Claim {
	b.Helper()
	request := sluice.ClaimRequest{Queue: queue, Limit: b.n, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()}
	if queue == "engine" {
		request.Engine = "temporal"
	}
	claimed, err := b.store.Claim(b.Context(), request)
	if err != nil || len(claimed.Jobs) == 0 {
		b.Fatalf("claimed %d of %s: %v", len(claimed.Jobs), queue, err)
	}
	return claimed.Jobs
}

// report stores the progress of jobs, and reads it.
func (b batches) report(claims []*sluice.Claim) {
	b.Helper()
	reports, ids := make([]progress.Report, len(claims)), make([]sluice.ID, len(claims))
	for i, c := range claims {
		reports[i], ids[i] = progress.New(c.ID, c.Token, 0.5, "half"), c.ID
	}
	if err := b.store.SaveProgress(b.Context(), reports); err != nil {
		b.Fatal(err)
	}
	if _, err := b.store.Progress(b.Context(), ids); err != nil {
		b.Fatal(err)
	}
}

func (b batches) settle(claims []*sluice.Claim, event sluice.Event) {
	b.Helper()
	renewals := make([]sluice.Renewal, len(claims))
	settlements := make([]sluice.Settlement, len(claims))
	for i, c := range claims {
		renewals[i] = sluice.Renewal{ID: c.ID, Token: c.Token, Lease: 2 * time.Minute}
		settlements[i] = sluice.Settlement{ID: c.ID, Token: c.Token, Event: event, Delay: time.Hour, Holder: "h:1:x", Claim: c}
	}
	if _, err := b.store.Renew(b.Context(), renewals); err != nil {
		b.Fatal(err)
	}
	b.settled(settlements)
}

func (b batches) settled(settlements []sluice.Settlement) {
	b.Helper()
	errs, err := b.store.Settle(b.Context(), settlements)
	if err != nil {
		b.Fatal(err)
	}
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// dispatch hands jobs to an engine, and then settles them as uncertain.
func (b batches) dispatch() {
	b.Helper()
	claims := b.claim("engine")
	intents := make([]engine.Intent, len(claims))
	settlements := make([]sluice.Settlement, len(claims))
	for i, c := range claims {
		ref := fmt.Sprint("run ", i)
		intents[i] = engine.Intent{ID: c.ID, Token: c.Token, Ref: ref, Engine: "temporal", Lease: time.Minute}
		settlements[i] = sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventDispatch, Ref: ref, Holder: "h:1:x", Claim: c}
	}
	if _, err := b.store.RecordIntent(b.Context(), intents); err != nil {
		b.Fatal(err)
	}
	b.settled(settlements)
	for i := range settlements {
		settlements[i].Event = sluice.EventDoubt
	}
	b.settled(settlements)
}

// release releases the held jobs of a queue, holds them again, and releases them again.
func (b batches) release(queue string) {
	b.Helper()
	held, err := hold.List(b.Context(), b.store, hold.Filter{Queue: queue, Limit: b.n})
	ids := make([]sluice.ID, len(held))
	for i, h := range held {
		ids[i] = h.JobID
	}
	err = errors.Join(err, hold.Release(b.Context(), b.store, ids, sluice.Act{By: "test"}),
		hold.Hold(b.Context(), b.store, ids, sluice.Act{By: "test", Reason: "again"}), hold.Release(b.Context(), b.store, ids, sluice.Act{By: "test"}))
	if err != nil || len(ids) != b.n {
		b.Fatalf("released %d: %v", len(ids), err)
	}
}

// cancel cancels the jobs of receipts.
func (b batches) cancel(receipts []sluice.Receipt) {
	b.Helper()
	ids := make([]sluice.ID, len(receipts))
	for i, r := range receipts {
		ids[i] = r.ID
	}
	if err := b.client.Cancel(b.Context(), ids, sluice.Act{By: "test"}); err != nil {
		b.Fatal(err)
	}
}

// fire makes n schedules fire at one instant, twice.
func (b batches) fire(overlap schedule.Overlap) {
	b.Helper()
	one, err := schedule.Set(b.Context(), b.store, "first", schedule.Definition{Queue: "fired", Every: time.Hour, Overlap: overlap}, sluice.Act{By: "ada"})
	if err != nil {
		b.Fatal(err)
	}
	definition, progress, err := one.Body()
	if err != nil {
		b.Fatal(err)
	}
	runPlain(b.T, b.store, "delete from sluice.schedule")
	runPlain(b.T, b.store, fmt.Sprintf("insert into sluice.schedule (name, queue, definition, progress) select '%s ' || n, 'fired', '%s', '%s' from generate_series(1, %d) n",
		overlap, definition, progress, b.n))
	for range 2 {
		runPlain(b.T, b.store, "update sluice.schedule set next_at = now()")
		b.store.ForgetLowWater()
		fired, err := b.store.FireSchedules(b.Context(), b.n, nil)
		if err != nil || fired.Schedules != b.n {
			b.Fatalf("fired %+v, %v, want %d schedules", fired, err, b.n)
		}
	}
}
