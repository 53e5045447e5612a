package postgres

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
)

// Lead tries to take the advisory lock of a task, on a connection of its own. Behind a transaction
// pooler, which has no sessions, everybody leads; that does no harm.
func (s *Store) Lead(ctx context.Context, task string) (sluice.Leadership, bool, error) {
	if s.options.TransactionPooler {
		return leadership{}, true, nil
	}
	var conn *pgx.Conn
	leads := false
	err := s.call(ctx, "lead "+task, func(ctx context.Context, _ bool) (err error) {
		if conn, err = pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig); err != nil {
			return err
		}
		if err = conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", lockOf(task)).Scan(&leads); err != nil || !leads {
			_ = conn.Close(ctx)
		}
		return err
	})
	if err != nil || !leads {
		return nil, false, err
	}
	return leadership{conn: conn}, true, nil
}

func lockOf(task string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("sluice " + task)) // never fails
	return int64(h.Sum64())
}

// leadership lasts as long as the session that holds the lock.
type leadership struct{ conn *pgx.Conn }

// Held reports whether the session is still there.
func (l leadership) Held(ctx context.Context) bool { return l.conn == nil || l.conn.Ping(ctx) == nil }

// Release ends the session, and with it the lock.
func (l leadership) Release() {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = l.conn.Close(ctx)
}
