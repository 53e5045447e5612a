package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/look.sql
var lookSQL string

// NextDue returns how long until the first waiting job of each queue is due.
func (s *Store) NextDue(ctx context.Context, queues []string) (map[string]time.Duration, error) {
	out := make(map[string]time.Duration)
	if len(queues) == 0 {
		return out, nil
	}
	dueAts, ids := s.lowWater.peek(queues)
	err := s.callAndCheck(ctx, "next due", func(ctx context.Context, knows int) (newer bool, err error) {
		clear(out)
		_, err = list(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
			var name *string
			var millis int64
			if err := row.Scan(&name, &millis); err != nil {
				return struct{}{}, err
			}
			if newer = newer || name == nil; name != nil {
				out[*name] = time.Duration(millis) * time.Millisecond
			}
			return struct{}{}, nil
		}, lookSQL, queues, dueAts, ids, knows)
		return newer, err
	})
	return out, err
}

// peek returns the marks of queues, 10 of each. If the times of claims show that walks from the front are cheap,
// peek begins at the front. For other queues, it does so as rarely as claims do. If this process has put a job behind the
// marks, peek begins where the next claim does.
func (m *lowWater) peek(queues []string) (dueAts []time.Time, ids uuidArray) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dueAts, ids = make([]time.Time, 0, 10*len(queues)), make(uuidArray, 0, 10*len(queues))
	for _, name := range queues {
		q := m.queues[name] // a queue that this process never claimed from has no marks
		fromFront := q == nil || q.disturbed && q.cheap() || time.Since(q.peekedAt) >= q.lookEvery()
		if q != nil && fromFront {
			q.peekedAt = time.Now()
			q.peeked++
		}
		for priority := range 10 {
			from := front
			if !fromFront {
				from = q.place[priority]
			}
			dueAts, ids = append(dueAts, from.dueAt), append(ids, from.id)
		}
	}
	return dueAts, ids
}
