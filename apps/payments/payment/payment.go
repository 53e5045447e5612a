// Package payment is the payments of the application. Phase A takes a payment in, stores it as SCHEDULED together with the
// job that is to execute it, and ends. Phase B executes it when Sluice lets it through. Neither sleeps, and phase B
// does not know of Sluice.
package payment

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
)

//go:embed sql/tables.sql
var tablesSQL string

//go:embed sql/astray.sql
var astraySQL string

//go:embed sql/follow.sql
var followSQL string

//go:embed sql/status.sql
var statusSQL string

// Queue is Sluice's queue of payments.
const Queue = "payment"

// Status is how far a payment has come.
type Status string

// The statuses of a payment. They tell of the business, and Failed also of the job.
const (
	// Scheduled: it is stored, and waits until it is due.
	Scheduled Status = "SCHEDULED"
	// Accepted: the money was moved.
	Accepted Status = "ACCEPTED"
	// Processing: payer, payee and partner were told. The last one.
	Processing Status = "PROCESSING"
	// Failed: its job is dead or cancelled, and no money was moved. A requeue of the job makes it Scheduled again.
	Failed Status = "FAILED"
)

// Request is a payment as a client asks for it.
type Request struct {
	ID       string    `json:"id"`
	Payer    string    `json:"payer"`
	Payee    string    `json:"payee"`
	Cents    int64     `json:"cents"`
	Currency string    `json:"currency"`
	DueAt    time.Time `json:"due_at"`
}

// ContextVersion is the version of Context that this program writes and understands.
const ContextVersion = 1

// Context is a payment and what phase A found out about it: the payload of its job, and the one argument of phase B.
type Context struct {
	Version int `json:"version"`
	Request
	// Route is how the money goes, FeeCents what that costs, Priority what the rules made of it.
	Route    string `json:"route"`
	FeeCents int64  `json:"fee_cents"`
	Priority int    `json:"priority"`
}

// Preset is how the queue behaves until an operator changes it: 500 payments in 5 s.
func Preset() sluice.Settings {
	s := sluice.DefaultSettings()
	s.Batch, s.Interval = 500, 5*time.Second
	s.Rate, s.Burst = sluice.Rate{Jobs: 500, Per: 5 * time.Second}, 500
	s.Concurrency = 5000           // an outage downstream must not pile runs up
	s.ClaimAhead = 5 * time.Second // one interval, so that no payment is late because its cycle was just over
	s.Jitter = 4 * time.Second
	s.MaxAttempts = 5
	s.Lease = 2 * time.Minute
	s.Audit = sluice.AuditFull
	s.Engine = "temporal"
	s.RunType, s.RunTaskQueue = "PaymentExecWorkflow", "payment-exec-task-queue"
	s.RunRef = "exec-{queue}-{key}"
	s.RunTimeout = time.Hour
	s.RetryRuns = true // every step of phase B may be repeated
	return s
}

// New is the domain of payments.
func New(b *books.Books) domain.Domain {
	initSteps, execSteps := &Init{b}, &Exec{b}
	preset := Preset()
	return domain.Domain{
		Queue: Queue, Preset: preset, Path: "/payments", Tables: tablesSQL, Follow: followSQL, Astray: astraySQL,
		Init: domain.Work{
			Workflow: "PaymentInitWorkflow", TaskQueue: "payment-init-task-queue", Workflows: 100, Activities: 200,
			Register: func(r domain.Registry) {
				r.RegisterWorkflowWithOptions(InitWorkflow, workflow.RegisterOptions{Name: "PaymentInitWorkflow"})
				r.RegisterActivityWithOptions(initSteps, activity.RegisterOptions{})
			},
		},
		Exec: domain.Work{
			Workflow: preset.RunType, TaskQueue: preset.RunTaskQueue, Workflows: 100, Activities: 200,
			Register: func(r domain.Registry) {
				r.RegisterWorkflowWithOptions(ExecWorkflow, workflow.RegisterOptions{Name: preset.RunType})
				r.RegisterActivityWithOptions(execSteps, activity.RegisterOptions{})
			},
		},
		Status: func(ctx context.Context, id string) (domain.Standing, error) { return standingOf(ctx, b.DB(), id) },
	}
}

func standingOf(ctx context.Context, db *sql.DB, id string) (standing domain.Standing, err error) {
	err = db.QueryRowContext(ctx, statusSQL, id).Scan(&standing.Status, &standing.Failure)
	if errors.Is(err, sql.ErrNoRows) {
		return standing, fmt.Errorf("payment %.80q: %w", id, sluice.ErrNotFound)
	}
	return standing, err
}
