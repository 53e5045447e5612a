package demo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// books are a store, and a function that tampers with its tables.
type books struct {
	store  sluice.Store
	tamper func(statement string) error
}

// settle works off a few payments. The payments p1 to p4 are posted, and p5 is dead.
func settle(t *testing.T, store sluice.Store, queue string) demo.Ledger {
	t.Helper()
	ledger, err := demo.NewLedger(store)
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(t.Context(), queue, demo.Settings(), sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		job := sluice.NewJob{Payload: fmt.Appendf(nil, `{"payment_id":"p%d","payer":"a","payee":"b","cents":%d}`, n+1, 100*(n+1))}
		if n == 4 {
			job.Payload = bytes.Replace(job.Payload, []byte("}"), []byte(`,"bank":"`+demo.BankClosed+`"}`), 1)
		}
		if err := demo.Prepare(&job, queue); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- demo.NewWorker(store, ledger, queue, 4, slog.New(slog.DiscardHandler)).Run(ctx) }()
	for {
		depth, err := client.Depth(ctx, queue)
		if err != nil {
			t.Fatal(err)
		}
		if depth.Ready+depth.Scheduled+depth.Claimed == 0 {
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return ledger
}

func onSQLite(t *testing.T) books {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "demo.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return books{store, func(statement string) error {
		return store.Transact(t.Context(), func(tx sqlite.Tx) error {
			_, err := tx.ExecContext(t.Context(), statement)
			return err
		})
	}}
}

func onPostgres(t *testing.T) books {
	store, err := postgres.Open(t.Context(), pgtest.NewDatabase(t), postgres.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	names := strings.NewReplacer("demo_ledger", "sluice_demo.ledger", "sluice_done", "sluice.done")
	return books{store, func(statement string) error {
		_, err := store.Pool().Exec(t.Context(), names.Replace(statement))
		return err
	}}
}

// TestCheckSeesEveryFault checks that the books hold, and that no fault stays unseen.
func TestCheckSeesEveryFault(t *testing.T) {
	t.Parallel()
	insert := func(payment string, cents ...int) string {
		var rows []string
		for _, c := range cents {
			rows = append(rows, fmt.Sprintf("('QUEUE', '%s', 'x', %d)", payment, c))
		}
		return "insert into demo_ledger (queue, payment_id, account, cents) values " + strings.Join(rows, ", ")
	}
	faults := []struct{ name, statement string }{
		{"an entry is there twice", insert("p1", 100)},
		{"a payment was posted twice, and both times balance", insert("p1", -100, 100)},
		{"an entry is missing", "delete from demo_ledger where queue = 'QUEUE' and payment_id = 'p1' and cents > 0"},
		{"a completed payment is not in the ledger", "delete from demo_ledger where queue = 'QUEUE' and payment_id = 'p1'"},
		{"a dead payment was posted", insert("p5", -500, 500)},
		{"a payment was posted that nobody enqueued", insert("p9", -1, 1)},
		{"an amount is another", "update demo_ledger set cents = cents * 2 where queue = 'QUEUE' and payment_id = 'p1'"},
		{"two amounts are exchanged", "update demo_ledger set cents = case when cents < 0 then -1 else 1 end * case payment_id when 'p1' then 200 else 100 end where queue = 'QUEUE' and payment_id in ('p1', 'p2')"},
		{"what is taken is not what is given", "update demo_ledger set cents = cents - 1 where queue = 'QUEUE' and payment_id = 'p1' and cents < 0"},
		{"a payment died for no reason", "update sluice_done set error = ''"}, // changes all queues, so it must come last
	}
	for name, open := range map[string]func(*testing.T) books{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			for i, fault := range faults {
				t.Run(fault.name, func(t *testing.T) {
					queue := fmt.Sprintf("payments-%d", i)
					ledger := settle(t, b.store, queue)
					check, err := ledger.Check(t.Context(), queue)
					if err != nil || !check.Holds() || check.Payments != 5 || check.Posted != 4 || check.Cents != 1500 || check.CentsDead != 500 || len(check.Reasons) != 1 {
						t.Fatalf("untouched, the books say %+v, %v", check, err)
					}
					if err := b.tamper(strings.ReplaceAll(fault.statement, "QUEUE", queue)); err != nil {
						t.Fatal(err)
					}
					if check, err = ledger.Check(t.Context(), queue); err != nil || check.Holds() {
						t.Errorf("the books hold: %+v, %v", check, err)
					}
				})
			}
		})
	}
}

func TestPaymentsThatCannotBePostedAreRefused(t *testing.T) {
	t.Parallel()
	for payload, says := range map[string]string{
		``: "it is missing", `5`: "it is not a payment", `{`: "it is not a payment", `{"payment_id":"p","payer":"a","payee":"b","cents":1.5}`: "it is not a payment",
		`{"payer":"a","payee":"b","cents":1}`: "payment_id is missing", `{"payment_id":"p","payee":"b","cents":1}`: "payer is missing",
		`{"payment_id":"p","payer":"a","cents":1}`: "payee is missing", `{"payment_id":"p","payer":"a","payee":"b"}`: "cents: 0",
		`{"payment_id":"p","payer":"a","payee":"b","cents":1099511627777}`: "cents: 1099511627777",
	} {
		job := sluice.NewJob{Payload: []byte(payload)}
		if err := demo.Prepare(&job, "payments"); !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", payload, err, says)
		}
	}
}

// TestNothingOfALineKeepsItsPaymentFromBeingCounted imports a line whose fields would hide its payment from the check.
// The check counts by key and queue, and expects every payment to be posted or dead.
func TestNothingOfALineKeepsItsPaymentFromBeingCounted(t *testing.T) {
	t.Parallel()
	job := sluice.NewJob{Queue: "elsewhere", Payload: []byte(`{"PAYMENT_ID":"p","payer":"a","payee":"b","cents":1,"cents":2}`), EnqueueOptions: sluice.EnqueueOptions{
		ID: sluice.NewID(), Key: "other", KeyScope: sluice.ForEver, OnDuplicate: sluice.Replace, ExpiresAt: time.Now(), Tenant: "acme", Priority: 3,
	}}
	if err := demo.Prepare(&job, "payments"); err != nil {
		t.Fatal(err)
	}
	o := job.EnqueueOptions
	if job.Queue != "payments" || o.Key != "p" || !o.ID.IsZero() || o.KeyScope != "" || o.OnDuplicate != "" || !o.ExpiresAt.IsZero() || o.Tenant != "acme" || o.Priority != 3 {
		t.Errorf("the job is %+v", job)
	}
	if strings.Count(string(job.Payload), `"cents":`) != 1 || !strings.Contains(string(job.Payload), `"payment_id":"p"`) {
		t.Errorf("the payload is %s", job.Payload)
	}
}

func TestWaveIsTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	write := func(seed uint64) string {
		var out bytes.Buffer
		if err := (demo.Wave{Payments: 500, Tenants: 20, Seed: seed, DueAt: time.Unix(1e9, 0)}).Write(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first := write(1)
	if first != write(1) {
		t.Error("the same seed makes another wave")
	}
	if first == write(2) {
		t.Error("another seed makes the same wave")
	}
	if lines := strings.Count(first, "\n"); lines != 500 || len(first) < 500*900 || len(first) > 500*1200 {
		t.Errorf("it has %d lines in %d bytes, want 500 of about 1 KB", lines, len(first))
	}
}
