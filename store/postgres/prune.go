package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/history"
)

//go:embed sql/prune.sql
var pruneSQL string

//go:embed sql/prune_keys.sql
var pruneKeysSQL string

// pruned is the result of one call.
type pruned struct {
	jobs, keys int
	walked     int           // jobs that were too old; other calls may have deleted some of them
	last       history.Place // of the last job that was walked
}

// Prune deletes finished jobs after their retention, and keys whose window has passed. The last calls of a pass
// remove results, and delete idle tenant queues.
func (s *Store) Prune(ctx context.Context, after string, limit int) (sluice.Pruned, error) {
	from, err := history.Parse(after)
	if err != nil {
		return sluice.Pruned{}, err
	}
	var done pruned
	err = s.call(ctx, "prune", func(ctx context.Context, _ bool) error {
		done = pruned{last: from}
		return s.pipelined(ctx, func(tx *pipeline) error { return prune(ctx, tx, from, limit, &done) })
	})
	if err != nil {
		return sluice.Pruned{}, err
	}
	out := sluice.Pruned{Deleted: done.jobs}
	if done.walked == limit || done.keys == limit {
		out.Next = done.last.String()
		return out, nil
	}
	if more, err := s.forgetResults(ctx, limit); err != nil {
		return out, err
	} else if more {
		out.Next = done.last.String()
		return out, nil
	}
	if err := s.pruneTenantQueues(ctx, limit); err != nil && ctx.Err() == nil {
		s.log.Emit(event.LinesNotForgotten, "", "error", err) // no reason to stop: the history is pruned
	}
	err = s.call(ctx, "forget limit keys", func(ctx context.Context, _ bool) error { return exec(ctx, s.pool, limitForgetSQL, limit) })
	if err != nil {
		return out, err
	}
	return out, s.forgetProgress(ctx, limit)
}

// prune deletes the next jobs of the history.
func prune(ctx context.Context, tx *pipeline, from history.Place, limit int, done *pruned) error {
	keys, err := list(ctx, tx, pgx.RowTo[int], pruneKeysSQL, limit)
	if err != nil {
		return err
	}
	done.keys = keys[0]
	since := pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	if !from.EndedAt.IsZero() {
		since = pgtype.Timestamptz{Time: from.EndedAt, Valid: true}
	}
	defaults := sluice.DefaultSettings()
	rows, err := query(ctx, tx, pruneSQL, from.Queue, string(from.Outcome), since, limit,
		defaults.KeepCompleted.Milliseconds(), defaults.KeepCancelled.Milliseconds(), defaults.KeepDead.Milliseconds())
	if err != nil {
		return err
	}
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var queue, outcome *string
		var endedAt pgtype.Timestamptz
		err := row.Scan(&done.jobs, &done.walked, &queue, &outcome, &endedAt)
		if err == nil && queue != nil {
			done.last = history.Place{Queue: *queue, Outcome: sluice.State(*outcome), EndedAt: timeOf(endedAt)}
		}
		return struct{}{}, err
	})
	return err
}
