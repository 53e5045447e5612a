// Package matcher is the matcher in Go: a worker of the library, beside those in other languages on the same queues.
package matcher

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/cmd/monitor/otlp"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/worker"
)

//go:embed sql/match.sql
var matchSQL string

//go:embed sql/failed.sql
var failedSQL string

// Mention is the payload of a job: the mention to resolve.
type Mention struct {
	ID int64 `json:"mention"`
}

// Options adjust a matcher.
type Options struct {
	// Queues are the sources to claim from.
	Queues []string
	// Slots is how many mentions are resolved at a time.
	Slots int
	// Work is how long each job takes besides, for the demo.
	Work time.Duration
	// Logger gets what happens.
	Logger *slog.Logger
	// Monitor is the loopback address of /metrics, /healthz and /readyz. Default: they are not there.
	Monitor string
}

// Run matches until ctx ends, and then drains.
func Run(ctx context.Context, k *kitchen.Kitchen, options Options) error {
	traces, err := otlp.New(ctx)
	if err != nil {
		return err
	}
	watched, err := monitor.New(k.Store, monitor.Options{Logger: options.Logger, Traces: traces})
	if err != nil {
		return err
	}
	w := worker.New(watched.Store, worker.Options{Slots: options.Slots, Logger: options.Logger})
	for _, queue := range options.Queues {
		m := &matcher{kitchen: k, work: options.Work}
		worker.Handle(w, sluice.QueueOf[Mention](queue), m.match, worker.QueueOptions{})
	}
	return watched.Beside(ctx, options.Monitor, w.Run)
}

type matcher struct {
	kitchen *kitchen.Kitchen
	work    time.Duration
}

// match resolves a mention in the transaction that completes its job.
func (m *matcher) match(ctx context.Context, job *worker.Job[Mention]) error {
	if m.work > 0 {
		select { // stands for what takes time, such as asking a service; nothing is open meanwhile
		case <-time.After(m.work):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := pgx.BeginFunc(ctx, m.kitchen.Pool(), func(tx pgx.Tx) error {
		var made json.RawMessage
		if err := tx.QueryRow(ctx, matchSQL, job.Payload.ID, job.ID.String(), job.Attempt(), resolver(job)).Scan(&made); err != nil {
			return err
		}
		return postgres.CompleteTx(ctx, tx, job.Claim, made)
	})
	if err == nil || errors.Is(err, sluice.ErrLost) || ctx.Err() != nil {
		return err
	}
	if !transient(err) {
		err = worker.Permanent(err)
	}
	return errors.Join(err, m.note(ctx, job, err))
}

func resolver(job *worker.Job[Mention]) string { return "go " + job.Holder }

// note writes the failed attempt on the trail. The worker settles it afterwards: unlike in the transaction of a
// completion, a crash between the two leaves a row too many of what was tried, never of what was decided.
func (m *matcher) note(ctx context.Context, job *worker.Job[Mention], err error) error {
	queue, queueErr := m.kitchen.Client.Queue(ctx, job.Queue)
	if queueErr != nil {
		return queueErr
	}
	dead := !transient(err) || sluice.FailureOf(job.Claim, queue.Settings, "").Event == sluice.EventBury
	_, err = m.kitchen.Pool().Exec(ctx, failedSQL, job.ID.String(), job.Attempt(), resolver(job), textOf(err), dead)
	return err
}

func textOf(err error) string {
	var theirs *pgconn.PgError
	if errors.As(err, &theirs) {
		return theirs.Message
	}
	return err.Error()
}

// transient reports whether another attempt may mend an error: what is no word of PostgreSQL's is of the connection,
// and of its classes those are of connection, rollback, resources, not now, system.
func transient(err error) bool {
	var theirs *pgconn.PgError
	if !errors.As(err, &theirs) {
		return true
	}
	for _, class := range []string{"08", "40", "53", "55", "57", "58"} {
		if strings.HasPrefix(theirs.Code, class) {
			return true
		}
	}
	return false
}
