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

// ClaimAhead elects a holder for tasks by a row with a lease. No session is involved, so the election works behind any
// pooler.
func (s *Store) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) (leads []string, err error) {
	err = s.call(ctx, "lead", func(ctx context.Context, _ bool) error {
		leads, err = list(ctx, s.pool, pgx.RowTo[string], leadSQL, holder, tasks, lease.Microseconds())
		return err
	})
	return leads, err
}

// Leads lists the leader of each task.
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
