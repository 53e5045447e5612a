package payment

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
)

//go:embed sql/insert.sql
var insertSQL string

//go:embed sql/stored.sql
var storedSQL string

// urgentCents is from where on a payment goes before others, maxCents from where on none is taken.
const (
	urgentCents = 1_000_000
	maxCents    = 100_000_000
)

// Batch is some payments on their way through phase A.
type Batch struct {
	Payments []domain.Item[Context] `json:"payments"`
	Refused  []domain.Refusal       `json:"refused,omitempty"`
}

// InitWorkflow is phase A, for one payment or a batch: validate, enrich, apply the rules, and store each as SCHEDULED
// together with its job. Then it ends; nothing of the payment waits in Temporal.
func InitWorkflow(ctx workflow.Context, items []json.RawMessage) (domain.Result, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 30 * time.Second, RetryPolicy: domain.RetryPolicy()})
	var steps *Init
	var batch Batch
	var result domain.Result
	if err := workflow.ExecuteActivity(ctx, steps.ValidatePayments, items).Get(ctx, &batch); err != nil {
		return result, err
	}
	for _, step := range []any{steps.EnrichPayments, steps.ApplyRules} {
		next := Batch{}
		if err := workflow.ExecuteActivity(ctx, step, batch).Get(ctx, &next); err != nil {
			return result, err
		}
		batch = next
	}
	err := workflow.ExecuteActivity(ctx, steps.SchedulePayments, batch).Get(ctx, &result)
	return result, err
}

// Init is the activities of phase A.
type Init struct{ books *books.Books }

// ValidatePayments refuses what is no payment.
func (i *Init) ValidatePayments(_ context.Context, items []json.RawMessage) (Batch, error) {
	requests, refused := domain.Decode(items, Request.check)
	batch := Batch{Refused: refused}
	for _, r := range requests {
		batch.Payments = append(batch.Payments, domain.Item[Context]{Line: r.Line, Value: Context{Version: ContextVersion, Request: r.Value}})
	}
	return batch, nil
}

func (r Request) check() error {
	switch {
	case r.ID == "" || len(r.ID) > 80 || strings.ContainsFunc(r.ID, func(c rune) bool { return c <= ' ' || c > '~' }):
		return fmt.Errorf("id %.100q must be 1 to 80 visible ASCII characters", r.ID)
	case !domain.Named(r.Payer) || !domain.Named(r.Payee) || r.Payer == r.Payee:
		return fmt.Errorf("payment %s needs a payer and a payee of at most 128 bytes without control characters, and they must differ", r.ID)
	case r.Cents <= 0:
		return fmt.Errorf("payment %s: %d cents is no amount to pay", r.ID, r.Cents)
	case len(r.Currency) != 3 || strings.ContainsFunc(r.Currency, func(c rune) bool { return c < 'A' || c > 'Z' }):
		return fmt.Errorf("payment %s: currency %.20q is not three capital letters", r.ID, r.Currency)
	case !domain.Dated(r.DueAt):
		return fmt.Errorf("payment %s needs a due_at of the years 1970 to 9999", r.ID)
	}
	return nil
}

// EnrichPayments adds how the money goes and what that costs.
func (i *Init) EnrichPayments(_ context.Context, batch Batch) (Batch, error) {
	for k := range batch.Payments {
		p := &batch.Payments[k].Value
		p.Route, p.FeeCents = "DOMESTIC", 25
		if p.Currency != "USD" {
			p.Route, p.FeeCents = "FOREIGN", 25+p.Cents/1000
		}
	}
	return batch, nil
}

// ApplyRules refuses what the house does not pay, and says what goes first.
func (i *Init) ApplyRules(_ context.Context, batch Batch) (Batch, error) {
	out := Batch{Refused: batch.Refused}
	for _, item := range batch.Payments {
		if item.Value.Cents > maxCents {
			out.Refused = append(out.Refused, domain.Refusal{Line: item.Line, ID: item.Value.ID, Reason: fmt.Sprintf("more than %d cents needs a person", maxCents)})
			continue
		}
		item.Value.Priority = sluice.DefaultPriority
		if item.Value.Cents >= urgentCents {
			item.Value.Priority = 3
		}
		out.Payments = append(out.Payments, item)
	}
	return out, nil
}

// SchedulePayments stores payments as SCHEDULED together with their jobs, in one transaction: no payment is without its
// job, and no context without its payment. It may be repeated.
func (i *Init) SchedulePayments(ctx context.Context, batch Batch) (domain.Result, error) {
	var result domain.Result
	initiated := activity.GetInfo(ctx).WorkflowExecution.ID
	err := i.books.Transact(ctx, func(tx books.Tx, client *sluice.Client) error {
		result = domain.Result{Refused: batch.Refused}
		var jobs []sluice.NewJob
		for _, item := range batch.Payments {
			stored, err := insert(ctx, tx, item.Value, initiated)
			switch {
			case errors.Is(err, errIDTaken):
				result.Refused = append(result.Refused, domain.Refusal{Line: item.Line, ID: item.Value.ID, Reason: err.Error()})
				continue
			case err != nil:
				return err
			case !stored:
				result.Duplicates++
				continue
			}
			job, err := jobOf(item.Value)
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

// jobs is the queue and the type of its payloads.
var jobs = sluice.QueueOf[Context](Queue)

// jobOf is the job that executes a payment. The payment's id is its key for ever, so that there is never a second one.
func jobOf(p Context) (sluice.NewJob, error) {
	return jobs.NewJob(p, sluice.EnqueueOptions{
		Key: p.ID, KeyScope: sluice.ForEver, DueAt: p.DueAt, Tenant: p.Payer, Priority: p.Priority,
	})
}

var errIDTaken = errors.New("the id is that of another payment")

// insert stores a payment, unless it is stored already.
func insert(ctx context.Context, tx books.Tx, p Context, initiated string) (stored bool, err error) {
	stored, err = books.Exec(ctx, tx, insertSQL, p.ID, p.Payer, p.Payee, p.Cents, p.Currency, p.DueAt.UnixMicro(), string(Scheduled), initiated, time.Now().UnixMicro())
	if err != nil || stored {
		return stored, err
	}
	same, err := isStored(ctx, tx, p)
	if err == nil && !same {
		err = errIDTaken
	}
	return false, err
}

// isStored reports whether the payment that has the id is this one.
func isStored(ctx context.Context, tx books.Tx, p Context) (bool, error) {
	rows, err := tx.QueryContext(ctx, storedSQL, p.ID, p.Payer, p.Payee, p.Cents, p.Currency, p.DueAt.UnixMicro())
	if err != nil {
		return false, err
	}
	defer func() { _ = rows.Close() }()
	found := rows.Next()
	return found, rows.Err()
}
