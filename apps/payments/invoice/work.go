package invoice

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
)

//go:embed sql/insert.sql
var insertSQL string

//go:embed sql/send.sql
var sendSQL string

// InitWorkflow is phase A: check the invoices, and store each together with its job.
func InitWorkflow(ctx workflow.Context, items []json.RawMessage) (domain.Result, error) {
	var steps *Steps
	var result domain.Result
	err := workflow.ExecuteActivity(withOptions(ctx), steps.ScheduleInvoices, items).Get(ctx, &result)
	return result, err
}

// ExecWorkflow is phase B: send the invoice.
func ExecWorkflow(ctx workflow.Context, in Invoice) error {
	var steps *Steps
	return workflow.ExecuteActivity(withOptions(ctx), steps.SendInvoice, in).Get(ctx, nil)
}

func withOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 30 * time.Second, RetryPolicy: domain.RetryPolicy()})
}

// Steps is the activities of both phases.
type Steps struct{ books *books.Books }

// ScheduleInvoices stores invoices together with their jobs, in one transaction. It may be repeated.
func (s *Steps) ScheduleInvoices(ctx context.Context, items []json.RawMessage) (domain.Result, error) {
	invoices, refused := domain.Decode(items, Invoice.check)
	var result domain.Result
	err := s.books.Transact(ctx, func(tx books.Tx, client *sluice.Client) error {
		result = domain.Result{Refused: refused}
		var jobs []sluice.NewJob
		for _, item := range invoices {
			in := item.Value
			stored, err := books.Exec(ctx, tx, insertSQL, in.ID, in.Customer, in.Cents, in.DueAt.UnixMicro())
			if err != nil {
				return err
			}
			if !stored {
				result.Duplicates++
				continue
			}
			job, err := sluice.QueueOf[Invoice](Queue).NewJob(in, sluice.EnqueueOptions{Key: in.ID, KeyScope: sluice.ForEver, DueAt: in.DueAt, Tenant: in.Customer})
			if err != nil {
				return err
			}
			jobs = append(jobs, job)
		}
		result.Scheduled = len(jobs)
		_, err := client.EnqueueMany(ctx, jobs)
		return err
	})
	return result, domain.Permanent(err)
}

func (in Invoice) check() error {
	if !domain.Named(in.ID) || len(in.ID) > 80 || !domain.Named(in.Customer) || in.Cents <= 0 || !domain.Dated(in.DueAt) {
		return fmt.Errorf("invoice %.80q needs an id of at most 80 bytes, a customer of at most 128, both without control characters, an amount, and a due_at of the years 1970 to 9999", in.ID)
	}
	return nil
}

// SendInvoice marks an invoice as sent, once.
func (s *Steps) SendInvoice(ctx context.Context, in Invoice) error {
	return s.books.Transact(ctx, func(tx books.Tx, _ *sluice.Client) error {
		_, err := books.Exec(ctx, tx, sendSQL, in.ID, time.Now().UnixMicro())
		return err
	})
}
