package payment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/invoice"
	"github.com/sluice-queue/sluice/apps/payments/payment"
	"github.com/sluice-queue/sluice/audit"
)

// No payment and no invoice may contradict its job, whoever moves the jobs, and whenever a process is killed.
func TestPaymentsNeverDisagreeWithTheirJobs(t *testing.T) {
	onBoth(t, func(d *desk) {
		invoices := invoice.New(d.books)
		d.prepare(invoices)
		for _, queue := range []string{payment.Queue, invoice.Queue} {
			_, err := d.books.Client.ChangeSettings(d.Context(), queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
				s.Rate, s.Burst, s.ClaimAhead, s.Jitter = sluice.Rate{}, 0, 0, 0 // no setting slows the moves
				s.Batch, s.Lease = 3, time.Second
				return nil
			})
			if err != nil {
				d.Fatal(err)
			}
		}
		m := newMover(d.Context(), d.books)
		d.Cleanup(m.run(d))
		for round, missing := 0, ""; round < 4 || missing != ""; round++ {
			d.fill(round, invoices)
			for range 60 {
				if err := m.move(); err != nil {
					d.Fatal(err)
				}
			}
			if round < 4 {
				apptest.KillMover(d, d.address)
			}
			d.agree(m)
			missing = d.missing()
			d.Logf("after round %d there is none of: %s", round, missing)
		}
		if n := d.count("select count(*) from (select 1 from payment_entry group by payment_id having count(*) <> 2) as wrong"); n > 0 {
			d.Errorf("the ledger has not two entries for each of %d payments", n)
		}
	})
}

// fill stores payments and invoices that are due.
func (d *desk) fill(round int, invoices domain.Domain) {
	d.Helper()
	var payments, bills []any
	for i := range 30 {
		r := request(fmt.Sprintf("p%d-%d", round, i))
		r.DueAt = time.Now().Add(-time.Minute)
		payments = append(payments, r)
		bills = append(bills, invoice.Invoice{ID: fmt.Sprintf("i%d-%d", round, i), Customer: "ada", Cents: 5, DueAt: r.DueAt})
	}
	d.init(payments...)
	d.submit(invoices.Init, bills...)
}

// agree checks that each item has the status of its job.
func (d *desk) agree(m *mover) {
	d.Helper()
	for _, domain := range m.domains {
		astray, err := d.books.Astray(d.Context(), domain.Astray)
		if err != nil || len(astray) > 0 {
			d.Fatalf("queue %s: %d items disagree with their jobs: %v\n%s", domain.Queue, len(astray), err, strings.Join(astray, "\n"))
		}
	}
}

// missing names the moves and the statuses that the test has not seen yet.
func (d *desk) missing() string {
	d.Helper()
	var missing []string
	for _, queue := range []string{payment.Queue, invoice.Queue} {
		unseen, err := apptest.Unseen(d.Context(), d.books.Client, queue,
			sluice.EventDispatch, sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventBury,
			sluice.EventCancel, sluice.EventDoubt, sluice.EventRequeue, sluice.EventUndo, audit.EventBeside, audit.EventTerminate, audit.EventDelete)
		if err != nil {
			d.Fatal(err)
		}
		for _, event := range unseen {
			missing = append(missing, queue+" "+string(event))
		}
		for _, status := range map[string][]string{
			payment.Queue: {string(payment.Scheduled), string(payment.Processing), string(payment.Failed)}, invoice.Queue: {"ISSUED", "SENT", "FAILED"},
		}[queue] {
			if d.count("select count(*) from "+queue+" where status = '"+status+"'") == 0 {
				missing = append(missing, queue+" "+status)
			}
		}
		if d.count("select count(*) from "+queue+" where failure like 'a person says%'") == 0 {
			missing = append(missing, queue+" done by a person's word")
		}
	}
	return strings.Join(missing, ", ")
}

// A run that begins after its job was cancelled moves no money. The requeued payment is executed once.
func TestACancelledPaymentIsNotExecuted(t *testing.T) {
	onBoth(t, func(d *desk) {
		d.init(request("p1"))
		job, act := d.job("p1"), sluice.Act{By: "ada", Reason: "not any more"}
		if err := d.books.Client.Cancel(d.Context(), []sluice.ID{job.ID}, act); err != nil {
			d.Fatal(err)
		}
		if err := d.run(d.domain.Exec, job.Payload).GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "failed before it was executed: cancelled") {
			d.Errorf("the run of a cancelled payment: %v", err)
		}
		if n := d.count("select count(*) from payment_entry"); n != 0 || d.status("p1") != string(payment.Failed) {
			d.Errorf("%d entries, status %s", n, d.status("p1"))
		}
		if err := d.books.Client.Requeue(d.Context(), []sluice.ID{job.ID}, act); err != nil {
			d.Fatal(err)
		}
		if d.status("p1") != string(payment.Scheduled) {
			d.Errorf("after a requeue: status %s", d.status("p1"))
		}
		if err := d.run(d.domain.Exec, job.Payload).GetWorkflowError(); err != nil || d.status("p1") != string(payment.Processing) {
			d.Errorf("%v, status %s", err, d.status("p1"))
		}
	})
}
