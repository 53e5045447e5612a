package leaktest_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/trace"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/scrub"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// secrets are texts that no row and no line may hold, each with the words in which an error quotes it.
var secrets = []struct{ secret, quoted string }{
	{"sk_live_4eC39HqLyjWDarjtT1zdp7dc", "the API refused the key %s"},
	{"8f2Kd93mZq0LxP7vTn4wQ", "Authorization: Bearer %s"},
	{"hunter2Secret9", "dial postgres://app:%s@db.example.com/books"},
	{"ann.lee@example.com", "no such user %s"},
	{"4242424242424242", "card %s was declined"},
	{"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "push with %s failed"},
	{"AKIAZ7Q2K4XW9TB3R6NM", "not authorized: %s"},
	{"correct-Horse-17", `config: {"password": "%s"}`},
	{"DE89370400440532013000", "account %s is closed"},
}

const found = "what-went-wrong" // every error contains this text, so the test can see that the errors arrived at all

// leaky is an error that quotes all secrets. A cut of a brief text falls in the middle of the first secret. The first
// secret also repeats so often that any cut of a long text falls into it. The argument shifts these repetitions by some
// bytes.
func leaky(shifted int) error {
	all := ""
	for _, s := range secrets {
		all += "; " + fmt.Sprintf(s.quoted, s.secret)
	}
	key := fmt.Sprintf(secrets[0].quoted, secrets[0].secret)
	brief := found + strings.Repeat(" so", 48) + " " + key
	return errors.New(brief + all + strings.Repeat(" so", 2400) + strings.Repeat(".", shifted) + strings.Repeat(" "+key, 40) + strings.Repeat(" so", 2400) + all)
}

// places returns the stores, each with a function that returns all bytes that it keeps.
func places(t *testing.T) map[string]func(t *testing.T) (sluice.Store, func() string) {
	t.Helper()
	return map[string]func(t *testing.T) (sluice.Store, func() string){
		"memory": func(*testing.T) (sluice.Store, func() string) {
			return memory.New(memory.Options{}), func() string { return "" } // told already returns all that it has
		},
		"sqlite": func(t *testing.T) (sluice.Store, func() string) {
			folder := t.TempDir()
			store, err := sqlite.Open(t.Context(), filepath.Join(folder, "jobs.db"), sqlite.Options{Migrate: true})
			must(t, err)
			return store, func() string { return files(t, folder) }
		},
		"postgres": func(t *testing.T) (sluice.Store, func() string) {
			store, err := postgres.Open(t.Context(), pgtest.NewDatabase(t), postgres.Options{Migrate: true, Logger: slog.New(slog.DiscardHandler)})
			must(t, err)
			return store, func() string { return rows(t, store.Pool()) }
		},
	}
}

// files reads all files of a folder.
func files(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	var all strings.Builder
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		must(t, err)
		all.Write(text)
	}
	return all.String()
}

// rows reads all tables of a database.
func rows(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	read := func(statement string) []string {
		got, err := pool.Query(t.Context(), statement)
		must(t, err)
		texts, err := pgx.CollectRows(got, pgx.RowTo[string])
		must(t, err)
		return texts
	}
	var all strings.Builder
	for _, table := range read("select quote_ident(tablename) from pg_tables where schemaname = 'sluice'") {
		for _, row := range read("select t::text from sluice." + table + " t") {
			all.WriteString(row + "\n")
		}
	}
	return all.String()
}

// TestNoErrorLeavesASecretBehind has handlers, engines, centres and receivers fail with errors that quote secrets.
func TestNoErrorLeavesASecretBehind(t *testing.T) {
	t.Parallel()
	for name, open := range places(t) {
		for _, how := range []struct {
			name   string
			scrub  func(string) string
			leaves bool
		}{{"by default", nil, false}, {"left alone", scrub.Nothing, true}} {
			t.Run(name+" "+how.name, func(t *testing.T) {
				t.Parallel()
				store, bytesOf := open(t)
				var log locked
				spans := tracetest.NewInMemoryExporter()
				observer := trace.New(trace.Options{TracerProvider: sdk.NewTracerProvider(sdk.WithSyncer(spans)), Scrub: how.scrub})
				counted := newMeter(t, store)
				seen := observe.Store(store, observer, counted)
				o := office{
					T: t, store: seen, client: sluice.NewClient(seen, sluice.ClientOptions{}), scrub: how.scrub, observers: []observe.Observer{observer, counted},
					logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
				}
				o.work()
				o.dispatch()
				o.forward()
				o.act()
				webhook := o.alert()
				for where, text := range map[string]string{
					"what the store tells": o.told(), "the bytes of the store": bytesOf(), "the log": log.String(), "the spans": textOf(t, spans), "the webhook": webhook,
				} {
					brief := where == "the webhook" // the webhook gets one error only, and a short part of it
					if !strings.Contains(text, found) && text != "" && !brief {
						t.Errorf("%s does not have the errors at all", where)
					}
					for _, s := range secrets {
						if has := holds(text, s.secret); has != how.leaves && text != "" && (has || !brief) {
							t.Errorf("%s: %q is there: %v", where, s.secret, has)
						}
					}
					if key := secrets[0].secret; !how.leaves && strings.Contains(text, key[:len(key)/3]) {
						t.Errorf("%s: a part of %q is there", where, key)
					}
				}
				o.tellsNothingGiven(bytesOf(), how.leaves, map[string]string{
					"the log": log.String(), "the spans": textOf(t, spans), "the webhook": webhook, "the scrape": counted.scrape(t),
				})
				must(t, store.Close())
			})
		}
	}
}

// office is the place in which everything fails.
type office struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
	logger *slog.Logger
	scrub  func(string) string

	observers []observe.Observer
}

// holds reports whether a text contains a secret, as text or in hexadecimal.
func holds(text, secret string) bool {
	return strings.Contains(text, secret) || strings.Contains(text, hex.EncodeToString([]byte(secret)))
}

// textOf returns all text in the spans.
func textOf(t *testing.T, spans *tracetest.InMemoryExporter) string {
	t.Helper()
	var all strings.Builder
	for _, span := range spans.GetSpans() {
		fmt.Fprintln(&all, span.Name, span.Status, span.Attributes, span.Events, span.Links)
	}
	return all.String()
}

func (o *office) queue(name, engine string) {
	o.Helper()
	s := sluice.DefaultSettings()
	s.MaxAttempts, s.Engine, s.Audit = 2, engine, sluice.AuditFull
	s.Backoff = sluice.Backoff{Base: time.Millisecond, Factor: 1, Max: time.Millisecond}
	_, err := o.client.EnsureQueue(o.Context(), name, s, sluice.Act{By: "test"})
	must(o.T, err)
}

func (o *office) add(queue, payload string) {
	o.Helper()
	_, err := o.client.Enqueue(o.Context(), sluice.NewJob{Queue: queue, Payload: json.RawMessage(payload)})
	must(o.T, err)
}

// work has handlers fail in every way.
func (o *office) work() {
	o.Helper()
	o.queue("mail", "")
	for _, how := range []string{`"fails"`, `"never"`, `"panics"`} {
		o.add("mail", how)
	}
	ctx, stop := context.WithTimeout(o.Context(), 10*time.Minute)
	defer stop()
	w := worker.New(o.store, worker.Options{Poll: 10 * time.Millisecond, Logger: o.logger, LogLimit: -1, Scrub: o.scrub})
	worker.Handle(w, sluice.QueueOf[string]("mail"), func(_ context.Context, job *worker.Job[string]) error {
		switch job.Payload {
		case "never":
			return worker.Permanent(leaky(14))
		case "panics":
			panic(leaky(28))
		}
		return leaky(0)
	}, worker.QueueOptions{})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for ctx.Err() == nil {
		depth, err := o.client.Depth(ctx, "mail")
		must(o.T, err)
		if depth.Dead == 3 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	must(o.T, <-ended)
}

// dispatch has an engine refuse runs, be busy and be gone, and has runs that fail.
func (o *office) dispatch() {
	o.Helper()
	engines := map[string]engine.Engine{"far": observe.Engine(failing{}, "far", o.observers...)}
	d := dispatcher.New(o.store, dispatcher.Options{Engines: engines, Logger: o.logger, LogLimit: -1, Scrub: o.scrub})
	for queue := range answers {
		o.queue(queue, "far")
		o.add(queue, `{}`)
	}
	for queue := range answers {
		_, err := d.Once(o.Context(), queue)
		must(o.T, err)
	}
	_, err := upkeep.New(o.store, upkeep.Options{Engines: engines, Logger: o.logger, LogLimit: -1, Scrub: o.scrub}).Once(o.Context(), true)
	must(o.T, err)
}

// answers maps each queue to the engine's answer to a start.
var answers = map[string]error{"refused": engine.ErrRefused, "busy": engine.ErrBusy, "gone": engine.ErrUnavailable, "fails": nil}

// failing is an engine whose errors all quote secrets.
type failing struct{ engine.Engine }

func (failing) Start(_ context.Context, target engine.Target, runs []engine.Run) []error {
	errs := make([]error, len(runs))
	for i := range errs {
		if kind := answers[target.Queue]; kind != nil {
			errs[i] = fmt.Errorf("%w: %w", leaky(42), kind)
		}
	}
	return errs
}

func (failing) Outcomes(_ context.Context, _ engine.Target, refs []string) ([]engine.Outcome, error) {
	out := make([]engine.Outcome, len(refs))
	for i, ref := range refs {
		out[i] = engine.Outcome{Ref: ref, State: engine.Failed, Error: leaky(21).Error()}
	}
	return out, nil
}

func (failing) Ended(context.Context, engine.Target, time.Time, []byte) (engine.Page, error) {
	return engine.Page{}, nil
}

func (failing) Check(context.Context, engine.Target) (engine.Report, error) {
	return engine.Report{}, nil
}

// forward has a central store refuse a job.
func (o *office) forward() {
	o.Helper()
	o.queue("events", "")
	o.add("events", `{}`)
	f := forward.New(o.store, refusing{memory.New(memory.Options{})}, forward.Options{Queues: []string{"events"}, Logger: o.logger, LogLimit: -1, Scrub: o.scrub})
	_, err := f.Once(o.Context())
	must(o.T, err)
}

type refusing struct{ sluice.Store }

// Unwrap returns the decorated store.
func (r refusing) Unwrap() sluice.Store { return r.Store }

func (r refusing) Enqueue(_ context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	return make([]sluice.Receipt, len(jobs)), &sluice.BatchError{Failed: map[int]error{0: leaky(35)}, Total: len(jobs)}
}

// told returns all that the store tells: jobs, attempts, the audit and the holders.
func (o *office) told() string {
	o.Helper()
	var all strings.Builder
	encoder := json.NewEncoder(&all)
	encoder.SetEscapeHTML(false)
	page, err := o.client.Jobs(o.Context(), sluice.JobFilter{})
	must(o.T, err)
	if len(page.Jobs) != 13 { // four of them are notifications: 2 alerts for 2 receivers
		o.Errorf("there are %d jobs, want 13", len(page.Jobs))
	}
	for _, listed := range page.Jobs {
		job, err := o.client.Job(o.Context(), listed.ID)
		must(o.T, err)
		attempts, err := o.client.Attempts(o.Context(), listed.ID)
		must(o.T, err)
		must(o.T, encoder.Encode([]any{job, attempts}))
	}
	audit, err := o.client.Audit(o.Context(), sluice.AuditFilter{Limit: 1000})
	must(o.T, err)
	holders, err := presence.Holders(o.Context(), o.store)
	must(o.T, err)
	alerts, err := alert.Read(o.Context(), o.store)
	must(o.T, err)
	must(o.T, encoder.Encode([]any{audit, holders, alerts}))
	return all.String()
}

// locked is a log for many goroutines.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
