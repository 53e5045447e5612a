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
		if conn, err = s.connect(ctx); err != nil {
			return err
		}
		if err = conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", lockOf(task)).Scan(&leads); err != nil || !leads {
			hangUp(conn)
		}
		return err
	})
	if err != nil || !leads {
		return nil, false, err
	}
	return leadership{conn, s.options.CallTimeout}, true, nil
}

// connect makes a connection beside the pool, in the way in which the pool makes its own.
func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	config := s.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil || config.AfterConnect == nil {
		return conn, err
	}
	if err := config.AfterConnect(ctx, conn); err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

// hangUp closes a connection, and does not wait long for a server that is silent.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

func lockOf(task string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("sluice " + task)) // never fails
	return int64(h.Sum64())
}

// leadership lasts as long as the session that holds the lock.
type leadership struct {
	conn    *pgx.Conn
	timeout time.Duration
}

// Held reports whether the session is still there. A server that does not answer in time may have
// given the lock to another.
func (l leadership) Held(ctx context.Context) bool {
	if l.conn == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return l.conn.Ping(ctx) == nil
}

// Release ends the session, and with it the lock.
func (l leadership) Release() {
	if l.conn != nil {
		hangUp(l.conn)
	}
}
