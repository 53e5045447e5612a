package payment_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/invoice"
	"github.com/sluice-queue/sluice/apps/payments/payment"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) {
	apptest.MoveIfAsked(openMover)
	pgtest.Main(m)
}

// desk is the domain on a database of its own. Temporal's test suite stands for a server.
type desk struct {
	*testing.T
	books   *books.Books
	domain  domain.Domain
	address string
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(d *desk)) {
	t.Helper()
	t.Parallel()
	for name, address := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "payments.db") },
		"postgres": func(t *testing.T) string { return pgtest.NewDatabase(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := address(t)
			b, err := books.Open(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			d := &desk{t, b, payment.New(b), at}
			d.prepare(d.domain)
			test(d)
		})
	}
}

// prepare makes the tables and the queue of a domain.
func (d *desk) prepare(of domain.Domain) {
	d.Helper()
	if err := d.books.Prepare(d.Context(), of.Tables, of.Follower()); err != nil {
		d.Fatal(err)
	}
	if _, err := d.books.Client.EnsureQueue(d.Context(), of.Queue, of.Preset, sluice.Act{By: "test"}); err != nil {
		d.Fatal(err)
	}
}

// environment runs a workflow with the domain's own activities.
func environment(work domain.Work) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	// The machine may be busy.
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}).SetTestTimeout(time.Minute)
	work.Register(env)
	return env
}

// run runs a workflow to its end.
func (d *desk) run(work domain.Work, argument any) *testsuite.TestWorkflowEnvironment {
	d.Helper()
	env := environment(work)
	env.ExecuteWorkflow(work.Workflow, argument)
	if !env.IsWorkflowCompleted() {
		d.Fatal("the workflow has not ended")
	}
	return env
}

// init runs phase A on payments.
func (d *desk) init(payments ...any) domain.Result {
	d.Helper()
	return d.submit(d.domain.Init, payments...)
}

// submit runs phase A of a domain on items.
func (d *desk) submit(phaseA domain.Work, all ...any) domain.Result {
	d.Helper()
	var items []json.RawMessage
	for _, one := range all {
		text, err := json.Marshal(one)
		if err != nil {
			d.Fatal(err)
		}
		items = append(items, text)
	}
	var result domain.Result
	if err := d.run(phaseA, items).GetWorkflowResult(&result); err != nil {
		d.Fatal(err)
	}
	return result
}

func (d *desk) count(query string) (n int) {
	d.Helper()
	if err := d.books.DB().QueryRowContext(d.Context(), query).Scan(&n); err != nil {
		d.Fatal(err)
	}
	return n
}

func (d *desk) status(id string) string {
	d.Helper()
	standing, err := d.domain.Status(d.Context(), id)
	if err != nil && !errors.Is(err, sluice.ErrNotFound) {
		d.Fatal(err)
	}
	return standing.Status
}

// job returns the job of a payment, or nil.
func (d *desk) job(id string) *sluice.Job {
	d.Helper()
	page, err := d.books.Client.Jobs(d.Context(), sluice.JobFilter{Queue: payment.Queue, Key: id})
	if err != nil {
		d.Fatal(err)
	}
	if len(page.Jobs) == 0 {
		return nil
	}
	job, err := d.books.Client.Job(d.Context(), page.Jobs[0].ID) // a list has no payloads, so read the job itself
	if err != nil {
		d.Fatal(err)
	}
	return &job
}

var due = time.Date(2030, 1, 2, 16, 0, 0, 0, time.UTC)

func request(id string) payment.Request {
	return payment.Request{ID: id, Payer: "ada", Payee: "bob", Cents: 1200, Currency: "EUR", DueAt: due}
}

func TestPhaseAStoresPaymentsWithTheirJobs(t *testing.T) {
	onBoth(t, func(d *desk) {
		if result := d.init(request("p1"), request("p2")); result.Scheduled != 2 || len(result.Refused) > 0 {
			d.Fatalf("result %+v", result)
		}
		if n := d.count("select count(*) from payment where init_workflow <> ''"); n != 2 {
			d.Errorf("%d payments name the run of phase A that stored them", n)
		}
		job := d.job("p1")
		if job == nil || d.status("p1") != "SCHEDULED" {
			d.Fatalf("status %q, job %v", d.status("p1"), job)
		}
		if ref := engine.RefOf(*job, d.domain.Preset); ref != "exec-payment-p1" || !job.DueAt.Equal(due) || job.Tenant != "ada" {
			d.Errorf("ref %s, due %s, tenant %s", ref, job.DueAt, job.Tenant)
		}
		var got payment.Context
		if err := json.Unmarshal(job.Payload, &got); err != nil {
			d.Fatal(err)
		}
		if want := (payment.Context{Version: 1, Request: request("p1"), Route: "FOREIGN", FeeCents: 26, Priority: 5}); got != want {
			d.Errorf("context %+v, want %+v", got, want)
		}
	})
}

func TestPhaseARefusesOnlyWhatIsWrong(t *testing.T) {
	onBoth(t, func(d *desk) {
		huge, same, taken := request("p2"), request("p3"), request("p1")
		huge.Cents, same.Payee, taken.Cents = 100_000_001, "ada", 1
		d.init(request("p1"))
		result := d.init("no payment", huge, same, taken, request("p1"), request("p4"), request("p4"))
		if result.Scheduled != 1 || result.Duplicates != 2 || len(result.Refused) != 4 {
			d.Fatalf("result %+v", result)
		}
		for i, want := range []string{"1 cannot unmarshal string", "3 payment p3 needs a payer", "2 more than", "4 the id is that of another"} {
			line, reason, _ := strings.Cut(want, " ")
			if got := result.Refused[i]; line != string(rune('0'+got.Line)) || !strings.Contains(got.Reason, reason) {
				d.Errorf("refusal %+v, want %s", got, want)
			}
		}
		if n := d.count("select count(*) from payment"); n != 2 || d.job("p4") == nil || d.job("p2") != nil {
			d.Errorf("%d payments", n)
		}
	})
}

// TestPhaseARefusesAloneWhatNoStoreTakes submits payments with texts and times that a database or Sluice refuses.
func TestPhaseARefusesAloneWhatNoStoreTakes(t *testing.T) {
	onBoth(t, func(d *desk) {
		odd := map[string]func(r *payment.Request){
			"payer":    func(r *payment.Request) { r.Payer = "a\x00da" },
			"long":     func(r *payment.Request) { r.Payer = strings.Repeat("a", 200) },
			"payee":    func(r *payment.Request) { r.Payee = "b\x00ob" },
			"currency": func(r *payment.Request) { r.Currency = "E\x00R" },
			"due":      func(r *payment.Request) { r.DueAt = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC) },
		}
		all := []any{request("good")}
		for id, change := range odd {
			r := request(id)
			change(&r)
			all = append(all, r)
		}
		if result := d.init(all...); result.Scheduled != 1 || len(result.Refused) != len(odd) {
			d.Errorf("result %+v", result)
		}
		invoices := invoice.New(d.books)
		d.prepare(invoices)
		result := d.submit(invoices.Init, invoice.Invoice{ID: "i1", Customer: "ada", Cents: 1, DueAt: due}, invoice.Invoice{ID: "i2", Customer: "a\x00da", Cents: 1, DueAt: due},
			invoice.Invoice{ID: "i\x003", Customer: "ada", Cents: 1, DueAt: due}, invoice.Invoice{ID: "i4", Customer: "ada", Cents: 1, DueAt: due.AddDate(-100, 0, 0)})
		if result.Scheduled != 1 || len(result.Refused) != 3 {
			d.Errorf("result of invoices %+v", result)
		}
	})
}

func TestPhaseALeavesNoPaymentWithoutAJob(t *testing.T) {
	onBoth(t, func(d *desk) {
		_, err := d.books.Client.ChangeSettings(d.Context(), payment.Queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
			s.PayloadLimit = 10
			return nil
		})
		if err != nil {
			d.Fatal(err)
		}
		text, err := json.Marshal(request("p1"))
		if err != nil {
			d.Fatal(err)
		}
		if err := d.run(d.domain.Init, []json.RawMessage{text}).GetWorkflowError(); err == nil {
			d.Error("a context that the queue refuses is taken")
		}
		if n := d.count("select count(*) from payment"); n != 0 || d.job("p1") != nil {
			d.Errorf("%d payments without a job", n)
		}
	})
}

func TestPhaseBExecutesAPaymentOnceHoweverOftenItRuns(t *testing.T) {
	onBoth(t, func(d *desk) {
		d.init(request("p1"))
		for range 2 {
			if err := d.run(d.domain.Exec, d.job("p1").Payload).GetWorkflowError(); err != nil {
				d.Fatal(err)
			}
		}
		if status := d.status("p1"); status != "PROCESSING" {
			d.Errorf("status %s", status)
		}
		for query, want := range map[string]int{
			"select count(*) from payment_entry":                   2,
			"select cast(sum(cents) as bigint) from payment_entry": 0,
			"select count(*) from payment_settlement":              1,
			"select count(*) from payment_notice":                  3,
		} {
			if got := d.count(query); got != want {
				d.Errorf("%s: %d, want %d", query, got, want)
			}
		}
	})
}

func TestPhaseBRefusesAContextThatItDoesNotKnow(t *testing.T) {
	onBoth(t, func(d *desk) {
		err := d.run(d.domain.Exec, payment.Context{Version: 2, Request: request("p1")}).GetWorkflowError()
		if err == nil || !strings.Contains(err.Error(), "context version 2") {
			d.Errorf("error %v", err)
		}
	})
}
