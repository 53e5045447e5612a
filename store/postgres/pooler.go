package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
)

// session is the settings that connections request, unless a pooler refuses them: PgBouncer accepts only settings
// that it knows. Their timeouts make the server give up when the store does, even if the connection is lost.
type session struct {
	settings map[string]string
	plain    atomic.Bool // requests no settings
}

func newSession(options Options) *session {
	millis := func(times int64) string { return fmt.Sprint(times * options.CallTimeout.Milliseconds()) }
	s := &session{settings: map[string]string{
		"statement_timeout": millis(1), "lock_timeout": millis(1), "idle_in_transaction_session_timeout": millis(3),
		"jit": "off", // compiling a statement takes 100 times as long as running it
	}}
	s.plain.Store(options.TransactionPooler)
	return s
}

// apply makes every connection of a pool request the settings. Settings in the DSN stay, but for two: the store sends and
// reads UTF-8 alone, and its statements are in standard SQL, whatever the role has. Every pooler knows these settings.
func (s *session) apply(config *pgxpool.Config) {
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	config.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on"
	if _, set := config.ConnConfig.RuntimeParams["application_name"]; !set {
		config.ConnConfig.RuntimeParams["application_name"] = "sluice"
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		for name, value := range s.settings {
			if _, set := c.RuntimeParams[name]; !set && !s.plain.Load() {
				c.RuntimeParams[name] = value
			}
		}
		return nil
	}
}

// refused reports whether a connection failed because a pooler refuses settings. From then on, none are requested.
func (s *session) refused(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "08P01" || !strings.Contains(server.Message, "startup parameter") {
		return false
	}
	return !s.plain.Swap(true)
}

// lookForPooler finds out whether a pooler gives each transaction another server process. Then the store can rely
// on nothing that a session keeps, such as LISTEN.
func (s *Store) lookForPooler(ctx context.Context) error {
	if s.options.TransactionPooler {
		s.pooled = true
		return nil
	}
	return s.call(ctx, "connect", func(ctx context.Context, _ bool) error {
		conn, err := s.pool.Acquire(ctx)
		if err != nil && s.session != nil && s.session.refused(err) {
			conn, err = s.pool.Acquire(ctx)
		}
		if err != nil {
			return err
		}
		defer conn.Release()
		pid, err := backend(ctx, conn.Conn())
		if err != nil || pid == conn.Conn().PgConn().PID() {
			return err // the server process is the one that the server named at the start
		}
		if s.pooled = s.sharesProcesses(ctx, conn.Conn()); s.pooled {
			s.pool.forgetPlans()
		}
		return nil
	})
}

// poolerLook is how long the search for a shared server process may take. A pooler that has no second process in
// this time counts as sharing: polling is right behind any pooler.
const poolerLook = 2 * time.Second

// sharesProcesses reports whether two connections share a server process, or one connection has several in turn.
// Behind a pooler in session mode, each connection keeps its own. Some questions are asked twice in a row, because
// a round-robin pooler would otherwise always give each connection the same process.
func (s *Store) sharesProcesses(ctx context.Context, first *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, poolerLook)
	defer cancel()
	second, err := s.connect(ctx)
	if err != nil {
		return true
	}
	defer hangUp(second)
	conns := [2]*pgx.Conn{first, second}
	var seen [2]uint32
	for _, i := range []int{0, 1, 0, 0, 1, 1, 0, 1} {
		pid, err := backend(ctx, conns[i])
		if err != nil || seen[i] != 0 && seen[i] != pid || seen[1-i] == pid {
			return true
		}
		seen[i] = pid
	}
	return false
}

// backend returns the server process that runs the next statement.
func backend(ctx context.Context, conn *pgx.Conn) (uint32, error) {
	pids, err := list(ctx, conn, pgx.RowTo[uint32], "select pg_backend_pid()::bigint")
	if err != nil {
		return 0, err
	}
	if len(pids) != 1 {
		return 0, fmt.Errorf("ask for the server process: %w", sluice.ErrUnavailable)
	}
	return pids[0], nil
}
