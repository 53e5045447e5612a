package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sluice-queue/sluice/presence"
)

//go:embed sql/lead.sql
var leadSQL string

//go:embed sql/leads.sql
var leadsSQL string

// signGrace is how long a sign of life may still take when its caller's context has ended.
const signGrace = 2 * time.Second

// sign is the context of a sign of life: a heartbeat or an election. The server may carry out a statement that its
// caller has given up. After Deregister, such a statement would list the ended process again. So a caller that ends
// waits for its last sign.
func sign(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return ctx, func() {}
	}
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(signGrace, cancel) })
	return patient, func() { stop(); cancel() }
}

// Elect elects a holder for tasks by a row with a lease. No session is involved, so the election works behind any
// pooler.
func (s *Store) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) (leads []string, err error) {
	ctx, done := sign(ctx)
	defer done()
	err = s.call(ctx, "lead", func(ctx context.Context, _ bool) error {
		leads, err = list(ctx, s.pool, pgx.RowTo[string], leadSQL, holder, tasks, lease.Microseconds())
		return err
	})
	return leads, err
}

// Leaders lists the leader of each task.
func (s *Store) Leaders(ctx context.Context) (out []presence.Leader, err error) {
	err = s.call(ctx, "list leads", func(ctx context.Context, _ bool) error {
		out, err = list(ctx, s.pool, func(row pgx.CollectableRow) (presence.Leader, error) {
			var l presence.Leader
			err := row.Scan(&l.Task, &l.Holder, &l.Since, &l.Until, &l.Held)
			l.Since, l.Until = l.Since.UTC(), l.Until.UTC()
			return l, err
		}, leadsSQL)
		return err
	})
	return out, err
}
