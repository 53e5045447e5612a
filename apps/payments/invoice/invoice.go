// Package invoice is the second domain of the application: invoices that are sent on a day. It came with these files and
// one line of settings; nothing in Sluice and nothing in the payments changed.
package invoice

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

// Queue is Sluice's queue of invoices.
const Queue = "invoice"

// Invoice is one to be sent: as a client asks for it, and as the payload of its job.
type Invoice struct {
	ID       string    `json:"id"`
	Customer string    `json:"customer"`
	Cents    int64     `json:"cents"`
	DueAt    time.Time `json:"due_at"`
}

// Preset is how the queue behaves until an operator changes it: the one row of settings that the domain needs.
func Preset() sluice.Settings {
	s := sluice.DefaultSettings()
	s.Batch, s.Interval = 50, 5*time.Second
	s.Rate, s.Burst = sluice.Rate{Jobs: 50, Per: 5 * time.Second}, 50
	s.Concurrency = 500 // an outage downstream must not pile runs up
	s.Audit = sluice.AuditFull
	s.Engine = "temporal"
	s.RunType, s.RunTaskQueue = "InvoiceExecWorkflow", "invoice-exec-task-queue"
	s.RunRef = "exec-{queue}-{key}"
	return s // a run that fails buries its job: a person looks before an invoice is sent again
}

// New is the domain of invoices.
func New(b *books.Books) domain.Domain {
	steps := &Steps{b}
	preset := Preset()
	return domain.Domain{
		Queue: Queue, Preset: preset, Path: "/invoices", Tables: tablesSQL, Follow: followSQL, Astray: astraySQL,
		Init: domain.Work{
			Workflow: "InvoiceInitWorkflow", TaskQueue: "invoice-init-task-queue", Workflows: 10, Activities: 20,
			Register: func(r domain.Registry) {
				r.RegisterWorkflowWithOptions(InitWorkflow, workflow.RegisterOptions{Name: "InvoiceInitWorkflow"})
				r.RegisterActivityWithOptions(steps.ScheduleInvoices, activity.RegisterOptions{})
			},
		},
		Exec: domain.Work{
			Workflow: preset.RunType, TaskQueue: preset.RunTaskQueue, Workflows: 10, Activities: 20,
			Register: func(r domain.Registry) {
				r.RegisterWorkflowWithOptions(ExecWorkflow, workflow.RegisterOptions{Name: preset.RunType})
				r.RegisterActivityWithOptions(steps.SendInvoice, activity.RegisterOptions{})
			},
		},
		Status: func(ctx context.Context, id string) (standing domain.Standing, err error) {
			err = b.DB().QueryRowContext(ctx, statusSQL, id).Scan(&standing.Status, &standing.Failure)
			if errors.Is(err, sql.ErrNoRows) {
				return standing, fmt.Errorf("invoice %.80q: %w", id, sluice.ErrNotFound)
			}
			return standing, err
		},
	}
}
