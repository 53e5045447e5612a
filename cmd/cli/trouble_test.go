package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// trouble is a row of the table of troubles: a fault that people cause, its symptoms, and the command that names its
// cause. `make docs` writes docs/guide/trouble.md from the rows.
type trouble struct {
	// sees is the first symptom that a person notices; the guide is sorted by it.
	sees string
	// cause names the fault in a few words.
	cause string
	// asks is the `sluice` command that names the cause. Its output must match the pattern says, and contain mend, a
	// part of the command that repairs the fault.
	asks, says, mend string
	// alert is the rule that fires; empty: none does. noStore: the alerts cannot be read either.
	alert string
	// unready lists the checks of /readyz that fail; empty: none fails. serveEnds: `sluice serve` does not even start.
	unready string
	// log is a part of a line that one of the processes logs; empty: no process logs a warning.
	log string
	// besides lists rules and checks that may fail too, because of the way in which the test causes the trouble.
	besides string
	// make causes the trouble, and returns the job for `sluice why`, or a zero ID.
	make func(s *scene) sluice.ID
	// needs is "", for a SQLite file, or "temporal", "postgres" or "clock". A row with "clock" gets a PostgreSQL server
	// of its own whose clock it can set.
	needs string
}

const (
	noStore   = "no store"
	serveEnds = "serve ends"
)

// troubles returns all rows. A new file with rows adds them here.
func troubles() []trouble {
	return slices.Concat(troublesOfWork(), troublesOfOrder(), troublesOfEngines(), troublesOfStores(), troublesOfDatabases())
}

// scene is the place of a trouble: a store, and processes that work on it.
type scene struct {
	*testing.T
	db     string          // the store's address, as --db takes it
	server *pgtest.Cluster // the scene's own server; nil: it has none
	store  sluice.Store
	client *sluice.Client
	checks []api.Check
	engine string // the address of the engine that doctor asks; empty: none
	within string // --timeout of the commands; empty: the default
	log    lockedBuffer
	logger *slog.Logger
}

// lockedBuffer collects the logs of several processes.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

var troubler = sluice.Act{By: "ada", Reason: "the bank is down"}

func TestTheTableOfTroublesIsLongAndNamesEachOnce(t *testing.T) {
	t.Parallel()
	rows, causes := troubles(), make(map[string]bool)
	for _, row := range rows {
		if causes[row.cause] {
			t.Errorf("there are two rows of %q", row.cause)
		}
		causes[row.cause] = true
	}
	if len(rows) < 40 {
		t.Errorf("the table has %d rows", len(rows))
	}
}

// TestTroubles causes each trouble, and checks `why`, `doctor`, `holders`, the alerts, /readyz and the log.
func TestTroubles(t *testing.T) {
	t.Parallel()
	for _, row := range troubles() {
		t.Run(strings.ReplaceAll(row.cause, " ", "-"), func(t *testing.T) {
			t.Parallel()
			if row.needs == "temporal" && testing.Short() {
				t.Log("needs a Temporal server: only without -short")
				return
			}
			s := newScene(t, row.needs)
			job := row.make(s)
			s.judge(row, job)
		})
	}
}

func newScene(t *testing.T, needs string) *scene {
	t.Helper()
	s := &scene{T: t}
	s.logger = slog.New(slog.NewJSONHandler(&s.log, nil))
	if needs == "clock" {
		s.server = serverWithClock(t)
		s.db = s.server.URL
		return s
	}
	if needs == "postgres" {
		if err := cluster.start(); err != nil {
			t.Fatal(err)
		}
		s.db = pgtest.NewDatabase(t)
		return s
	}
	s.db = "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	return s
}

// open opens the store for the processes of the scene. It migrates a SQLite file.
func (s *scene) open() {
	s.Helper()
	s.openWithin(0)
}

// openWithin opens the store with a time limit for each of its calls; 0: the default.
func (s *scene) openWithin(timeout time.Duration) {
	s.Helper()
	var store interface {
		sluice.Store
		Close() error
	}
	var err error
	if path, is := strings.CutPrefix(s.db, "sqlite:"); is {
		store, err = sqlite.Open(s.Context(), path, sqlite.Options{Migrate: true, Logger: s.logger, CallTimeout: timeout})
	} else {
		store, err = postgres.Open(s.Context(), s.db, postgres.Options{Logger: s.logger, CallTimeout: timeout})
	}
	s.ok(err)
	s.Cleanup(func() { _ = store.Close() })
	s.store, s.client = store, sluice.NewClient(store, sluice.ClientOptions{Logger: s.logger})
	s.checks = append(s.checks, api.StoreAnswers(store), api.Led(store))
	if check, has := api.SchemaIsUpToDate(store); has {
		s.checks = append(s.checks, check)
	}
}

func (s *scene) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// longBackoff delays the next attempt of a job until the test is over.
func longBackoff(settings *sluice.Settings) {
	settings.Backoff = sluice.Backoff{Base: 24 * time.Hour, Factor: 1, Max: 24 * time.Hour}
}

// queue makes a queue.
func (s *scene) queue(name string, change func(*sluice.Settings)) {
	s.Helper()
	settings := sluice.DefaultSettings()
	change(&settings)
	_, err := s.client.EnsureQueue(s.Context(), name, settings, troubler)
	s.ok(err)
}

// add enqueues jobs that have been due for two minutes, and returns the last one.
func (s *scene) add(queue string, n int, options sluice.EnqueueOptions) (last sluice.ID) {
	s.Helper()
	options.DueAt = time.Now().Add(-2 * time.Minute)
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: queue, Payload: json.RawMessage(`{}`), EnqueueOptions: options}
	}
	receipts, err := s.client.EnqueueMany(s.Context(), jobs)
	s.ok(err)
	return receipts[n-1].ID
}

// start runs a process of the scene until the test ends.
func (s *scene) start(run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	var ended sync.WaitGroup
	ended.Go(func() { _ = run(ctx) })
	s.Cleanup(func() { stop(); ended.Wait() })
}

// tend runs an upkeep, and waits until it leads and has sent a heartbeat.
func (s *scene) tend(engines map[string]engine.Engine) {
	s.Helper()
	u := s.upkeep(engines)
	s.until("upkeep leads and beats", func() bool {
		status := u.Status()
		return len(status.Tasks) > 0 && !status.Heartbeat.IsZero()
	})
}

func (s *scene) upkeep(engines map[string]engine.Engine) *upkeep.Upkeep {
	u := upkeep.New(s.store, upkeep.Options{Interval: 50 * time.Millisecond, Engines: engines, Logger: s.logger})
	s.checks = append(s.checks, api.Beats("upkeep", u.Status))
	s.start(u.Run)
	return u
}

// dispatch runs a dispatcher.
func (s *scene) dispatch(engines map[string]engine.Engine, queues ...string) {
	d := dispatcher.New(s.store, dispatcher.Options{Engines: engines, Queues: queues, Poll: 50 * time.Millisecond, Logger: s.logger, Drain: time.Second})
	s.checks = append(s.checks, api.NoConditions("breaker", d.Status))
	s.start(d.Run)
}

// work runs a worker of a queue.
func (s *scene) work(queue string, handler worker.Handler[json.RawMessage]) {
	s.Helper()
	s.workAt(s.store, queue, handler)
}

func (s *scene) workAt(store sluice.Store, queue string, handler worker.Handler[json.RawMessage]) {
	s.Helper()
	w := worker.New(store, worker.Options{Slots: 2, Poll: 50 * time.Millisecond, Logger: s.logger, Drain: 100 * time.Millisecond})
	worker.Handle(w, sluice.QueueOf[json.RawMessage](queue), handler, worker.QueueOptions{})
	s.start(w.Run)
	s.until("the worker beats", func() bool { return s.told(func(h presence.Holder) bool { return h.Role == presence.RoleWorker }) })
}

func nothing(context.Context, *worker.Job[json.RawMessage]) error { return nil }

// told reports whether the store knows a process for which is returns true.
func (s *scene) told(is func(presence.Holder) bool) bool {
	s.Helper()
	holders, err := presence.Given(s.store).Holders(s.Context())
	s.ok(err)
	for _, h := range holders {
		if is(h) {
			return true
		}
	}
	return false
}

// suffers waits until a process of a role reports a condition.
func (s *scene) suffers(role string, kind presence.ConditionKind) {
	s.Helper()
	s.until("a "+role+" is "+string(kind), func() bool {
		return s.told(func(h presence.Holder) bool {
			for _, c := range h.Conditions {
				if h.Role == role && c.Kind == kind {
					return true
				}
			}
			return false
		})
	})
}

// becomes waits until is returns true for a job.
func (s *scene) becomes(id sluice.ID, is func(sluice.Job) bool) {
	s.Helper()
	s.until("the job is as it should be", func() bool {
		job, err := s.client.Job(s.Context(), id)
		s.ok(err)
		return is(job)
	})
}

func (s *scene) until(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("it never came to this: %s; the log is\n%s", what, s.log.String())
		}
	}
}

// claim claims a job as a worker that dies at once: nobody renews the lease.
func (s *scene) claim(queue string, lease time.Duration) sluice.ID {
	holder := presence.NewID()
	_, err := presence.Given(s.store).Heartbeat(s.Context(), presence.Holder{ID: holder, Role: presence.RoleWorker, Queues: []string{queue}, Slots: 1, Busy: 1})
	s.ok(err)
	claimed, err := s.store.Claim(s.Context(), sluice.ClaimRequest{Queue: queue, Limit: 1, Holder: holder, Lease: lease, Token: sluice.NewToken()})
	s.ok(err)
	if len(claimed.Jobs) != 1 {
		s.Fatalf("claimed %d jobs", len(claimed.Jobs))
	}
	return claimed.Jobs[0].ID
}

// everyday matches notes of doctor that are normal on a test machine.
var everyday = regexp.MustCompile(`(?m)^• (filesystem|durability|statements|sight|server|pages|disk) .*$`)

// judge checks each command and process that should tell of the trouble.
func (s *scene) judge(row trouble, job sluice.ID) {
	s.Helper()
	said := map[string]string{}
	doctor := []string{"doctor"}
	if s.engine != "" {
		doctor = append(doctor, "--temporal", s.engine)
	}
	commands := [][]string{doctor, {"holders"}}
	if !job.IsZero() {
		commands = append(commands, []string{"why", job.String()})
	}
	for _, args := range commands {
		said[args[0]], _ = cli.Run(s.Context(), s.command(args...)...)
	}
	all := fmt.Sprintf("doctor:\n%s\nholders:\n%s\nwhy:\n%s", said["doctor"], said["holders"], said["why"])
	if named := said[row.asks]; !regexp.MustCompile(row.says).MatchString(named) || !strings.Contains(named, row.mend) {
		s.Errorf("`sluice %s` does not say %q, or not that %q mends it\n%s", row.asks, row.says, row.mend, all)
	}
	if rest := everyday.ReplaceAllString(said["doctor"], ""); !regexp.MustCompile(`(?m)^(✖|•|error:) `).MatchString(rest) {
		s.Errorf("doctor says that all is well\n%s", all)
	}
	if strings.Contains(said["why"], "it should start now") {
		s.Errorf("why says that it starts\n%s", all)
	}
	if strings.Contains(said["holders"], "✔") { // the command never says that all is well
		s.Errorf("holders says that all is well\n%s", all)
	}
	if row.alert == noStore {
		if text, code := cli.Run(s.Context(), s.command("alerts", "ls")...); code == 0 {
			s.Errorf("the rules of alerts can be looked at:\n%s", text)
		}
	} else {
		s.judgeAlerts(row)
	}
	if s.store != nil {
		s.judgeReadiness(row)
	} else {
		s.judgeServe(row)
	}
	s.judgeLog(row)
}

// command completes a command line with the address of the scene's store.
func (s *scene) command(args ...string) []string {
	if s.within != "" {
		args = append(args, "--timeout", s.within)
	}
	return append(args, "--db", s.db)
}

// nowAndThen is the pause between two evaluations of the rules. Rules read statistics, which processes store every 10
// s.
const nowAndThen = 200 * time.Millisecond

// judgeAlerts checks that the rules of the row fire in time, and no other rules.
func (s *scene) judgeAlerts(row trouble) {
	s.Helper()
	wanted := strings.Fields(row.alert)
	for end := time.Now().Add(patience); ; time.Sleep(nowAndThen) {
		broken := s.broken()
		if others := without(broken, row.alert+" "+row.besides); len(others) > 0 {
			s.Errorf("the alerts %q go off, want %q", broken, row.alert)
			return
		}
		if len(without(wanted, strings.Join(broken, " "))) == 0 {
			return
		}
		if time.Now().After(end) {
			s.Errorf("the alerts %q go off, want %q", broken, row.alert)
			return
		}
	}
}

// broken lists the rules that fire now, or will fire if the condition lasts.
func (s *scene) broken() (rules []string) {
	s.Helper()
	found, err := alert.New(s.store, alert.Options{Logger: slog.New(slog.DiscardHandler)}).Read(s.Context())
	s.ok(err)
	for _, f := range found {
		if f.Err != nil {
			s.Errorf("the rule %s cannot be looked at: %v", f.Rule.Name, f.Err)
		}
		if f.Alert.State == alert.Pending || f.Alert.State == alert.Firing {
			rules = append(rules, f.Rule.Name)
		}
	}
	return rules
}

// without returns a list without the words of a text.
func without(all []string, text string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(strings.Fields(text), name) })
}

// judgeReadiness compares the failing checks of /readyz with the row's.
func (s *scene) judgeReadiness(row trouble) {
	s.Helper()
	var failing []string
	report := api.NewReadiness(s.checks...).Report()
	for _, check := range report.Checks {
		if !check.Well {
			failing = append(failing, check.Check)
		}
	}
	if got := strings.Join(without(failing, row.besides), " "); got != row.unready {
		s.Errorf("/readyz fails by %q, want %q:\n%s", failing, row.unready, report)
	}
}

// judgeServe starts a server whose store cannot be opened. The server ends with the error, or waits for the store and
// is not ready until then.
func (s *scene) judgeServe(row trouble) {
	s.Helper()
	server := serve(s.T, s.db)
	if row.unready == serveEnds {
		said, err := io.ReadAll(server.stderr)
		s.ok(err)
		if server.Wait() == nil || !strings.Contains(string(said), "error: sluice serve failed") {
			s.Errorf("the server ends, and says:\n%s", said)
		}
		_, _ = s.log.Write(said)
		return
	}
	server.becomes(s.T, 503, "✖ "+row.unready)
	_, _ = s.log.Write([]byte(server.finds(s.T, "(.*store awaited.*)")))
	s.ok(server.Process.Kill())
	server.ends(s.T, -1)
}

// loud matches warnings and errors in the log.
var loud = regexp.MustCompile(`(?m)^.*"level":"(WARN|ERROR)".*$`)

func (s *scene) judgeLog(row trouble) {
	s.Helper()
	if row.log == "" {
		if lines := loud.FindAllString(s.log.String(), -1); len(lines) > 0 {
			s.Errorf("the row has no log, and the processes log:\n%s", strings.Join(lines, "\n"))
		}
		return
	}
	s.until("a process logs "+row.log, func() bool { return strings.Contains(s.log.String(), row.log) })
}

// silence makes the workers look as if they had died a minute ago, so that the test need not wait.
func (s *scene) silence() {
	s.Helper()
	store, is := s.store.(*sqlite.Store)
	if !is {
		s.Fatal("the store is none of SQLite")
	}
	_, err := store.DB().ExecContext(s.Context(), "update sluice_holder set seen = seen - 60000000 where role = 'worker'")
	s.ok(err)
}

// TestDocsOfTroublesAreMadeFromTheTable writes the guide with -update.
func TestDocsOfTroublesAreMadeFromTheTable(t *testing.T) {
	t.Parallel()
	const path = "../../docs/guide/trouble.md"
	page := troublePage(troubles())
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if string(text) != page {
		t.Errorf("%s is not what the table says; run `make docs`", path)
	}
}
