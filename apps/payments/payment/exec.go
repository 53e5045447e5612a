package payment

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
)

//go:embed sql/run.sql
var runSQL string

//go:embed sql/accept.sql
var acceptSQL string

//go:embed sql/entry.sql
var entrySQL string

//go:embed sql/settle.sql
var settleSQL string

//go:embed sql/notice.sql
var noticeSQL string

//go:embed sql/process.sql
var processSQL string

// ExecWorkflow is phase B: it executes a payment, settles it, and tells those concerned. It is nothing but business: it
// gets all it needs as its argument, and whoever starts it follows it to its end.
func ExecWorkflow(ctx workflow.Context, p Context) error {
	if p.Version != ContextVersion {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("context version %d is not %d", p.Version, ContextVersion), "version", nil)
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 30 * time.Second, RetryPolicy: domain.RetryPolicy()})
	var steps *Exec
	for _, step := range []any{steps.ExecutePayment, steps.PostProcess, steps.SendNotifications} {
		if err := workflow.ExecuteActivity(ctx, step, p).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// Exec is the activities of phase B. Temporal may run each more than once, so each does nothing that is done already.
type Exec struct{ books *books.Books }

// ExecutePayment moves the money: SCHEDULED becomes ACCEPTED, and the ledger gets its two entries. It also notes which run
// did so, so that a second run of the same payment would show.
func (e *Exec) ExecutePayment(ctx context.Context, p Context) error {
	run := activity.GetInfo(ctx).WorkflowExecution
	return e.books.Transact(ctx, func(tx books.Tx, _ *sluice.Client) error {
		now := time.Now().UnixMicro()
		if _, err := books.Exec(ctx, tx, runSQL, p.ID, run.ID, run.RunID, now); err != nil {
			return err
		}
		accepted, err := books.Exec(ctx, tx, acceptSQL, p.ID, now, string(Scheduled), string(Accepted))
		if err != nil {
			return err
		}
		if !accepted {
			return refuseFailed(ctx, tx, p.ID)
		}
		if _, err := books.Exec(ctx, tx, entrySQL, p.ID, p.Payer, -p.Cents); err != nil {
			return err
		}
		_, err = books.Exec(ctx, tx, entrySQL, p.ID, p.Payee, p.Cents)
		return err
	})
}

// refuseFailed ends the run of a payment whose job is dead or cancelled: a run may be on its way when that happens. One
// that was executed before goes on.
func refuseFailed(ctx context.Context, tx books.Tx, id string) error {
	rows, err := tx.QueryContext(ctx, statusSQL, id)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var status Status
	var failure string
	if rows.Next() {
		if err := rows.Scan(&status, &failure); err != nil {
			return err
		}
	}
	if status == Failed {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("payment %s failed before it was executed: %s", id, failure), "failed", nil)
	}
	return rows.Err()
}

// PostProcess settles what the payment costs.
func (e *Exec) PostProcess(ctx context.Context, p Context) error {
	return e.books.Transact(ctx, func(tx books.Tx, _ *sluice.Client) error {
		_, err := books.Exec(ctx, tx, settleSQL, p.ID, p.Route, p.FeeCents, time.Now().UnixMicro())
		return err
	})
}

// SendNotifications tells payer, payee and partner: ACCEPTED becomes PROCESSING.
func (e *Exec) SendNotifications(ctx context.Context, p Context) error {
	return e.books.Transact(ctx, func(tx books.Tx, _ *sluice.Client) error {
		now := time.Now().UnixMicro()
		for _, party := range []string{"payer", "payee", "partner"} {
			if _, err := books.Exec(ctx, tx, noticeSQL, p.ID, party, now); err != nil {
				return err
			}
		}
		_, err := books.Exec(ctx, tx, processSQL, p.ID, now, string(Accepted), string(Processing))
		return err
	})
}
