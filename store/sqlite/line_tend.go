package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/line_idle.sql
var lineIdleSQL string

//go:embed sql/line_forget.sql
var lineForgetSQL string

// lineName identifies a line.
type lineName struct{ queue, tenant string }

// tendedLine is a line that upkeep evaluates.
type tendedLine struct {
	flow.Line
	queue string
	busy  bool // jobs wait in the line, or are in flight
}

// pruneLines deletes idle lines in one slice, so that lines of former tenants do not stay for ever.
func (s *Store) pruneLines(ctx context.Context, limit int) error {
	s.pruning.Lock()
	defer s.pruning.Unlock()
	var next lineName
	err := s.write(ctx, "prune lines", func(tx runner, _ bool) (err error) {
		next, err = pruneLines(tx, s.pruneFrom, limit)
		return err
	})
	if err == nil {
		s.pruneFrom = next
	}
	return err
}

func pruneLines(tx runner, after lineName, limit int) (next lineName, err error) {
	slice, err := list(tx, scanTended, lineIdleSQL, after.queue, after.tenant, limit)
	if err != nil {
		return after, err
	}
	idle := make(map[string][]*tendedLine)
	for _, l := range slice {
		if !l.busy {
			idle[l.queue] = append(idle[l.queue], l)
		}
	}
	for queue, lines := range idle {
		if err := forgetLines(tx, queue, lines); err != nil {
			return after, err
		}
	}
	if len(slice) == limit {
		last := slice[limit-1]
		next = lineName{last.queue, last.Tenant}
	}
	return next, nil
}

func scanTended(rows *sql.Rows) (*tendedLine, error) {
	l := &tendedLine{}
	var wakeAt, filledAt *int64
	err := rows.Scan(&l.queue, &l.Tenant, &l.Turn, &l.Active, &l.Full, &wakeAt, &l.Bucket.Tokens, &filledAt, &l.busy)
	l.WakeAt, l.Bucket.FilledAt = timeOf(wakeAt), timeOf(filledAt)
	return l, err
}

// forgetLines deletes the lines of a queue that hold no state worth keeping.
func forgetLines(tx runner, queue string, lines []*tendedLine) error {
	g, err := gateOf(tx, queue)
	if err != nil {
		return err
	}
	tenants := make([]string, len(lines))
	for i, l := range lines {
		tenants[i] = l.Tenant
	}
	at := now()
	terms, err := termsOf(tx, queue, g.settings, tenants, at)
	if err != nil {
		return err
	}
	for _, l := range lines {
		l.EffectiveLimits = terms[l.Tenant]
		if !l.Spare(g.mark, g.byTenant, time.UnixMicro(at)) {
			continue
		}
		if _, err := tx.exec(lineForgetSQL, queue, l.Tenant); err != nil {
			return err
		}
	}
	return nil
}
