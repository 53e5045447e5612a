package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/migration"
)

//go:embed sql/reader.sql
var readerSQL string

// call runs one verb under the store's deadline and tries it again after a transient fault. The
// verb is told whether an earlier try may have been committed without our knowing.
func (s *Store) call(ctx context.Context, verb string, do func(ctx context.Context, again bool) error) error {
	return s.callBy(ctx, verb, func(ctx context.Context, again bool) error {
		if err := s.mayWork(ctx, s.pool); err != nil {
			return err
		}
		return do(ctx, again)
	})
}

// callAndCheck is call for a verb that an idle process uses now and then. Its statement itself says whether the schema has a
// step that needs a newer program: a question of its own would double what idle processes ask. Such a verb may run on that
// schema once.
func (s *Store) callAndCheck(ctx context.Context, verb string, do func(ctx context.Context, knows int) (newer bool, err error)) error {
	return s.callBy(ctx, verb, func(ctx context.Context, _ bool) error {
		asked := false
		err := s.schema.Check(func(knows int) ([]migration.Applied, error) {
			asked = true
			newer, err := do(ctx, knows)
			if err != nil || !newer {
				return nil, err
			}
			return tooNew(ctx, s.pool, knows)
		})
		if err == nil && !asked { // it was looked a moment ago
			_, err = do(ctx, knownSteps())
		}
		return err
	})
}

// callBy is call without a look at the schema.
func (s *Store) callBy(ctx context.Context, verb string, do func(ctx context.Context, again bool) error) error {
	callerCtx := ctx
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	if s.closed.Load() {
		return fmt.Errorf("%s: the store is closed: %w", verb, sluice.ErrUnavailable)
	}
	var fault error // why the last try failed that was made to its end
	wait := 5 * time.Millisecond
	for again := false; ; again = true {
		err := do(ctx, again)
		if err == nil {
			return nil
		}
		if callerCtx.Err() != nil && fault != nil { // it ended in the middle of a try; the store was out of reach before
			return fmt.Errorf("%s: %w: %w: %w", verb, callerCtx.Err(), sluice.ErrUnavailable, fault)
		}
		if callerCtx.Err() != nil {
			return fmt.Errorf("%s: %w", verb, callerCtx.Err())
		}
		if s.closed.Load() {
			return fmt.Errorf("%s: the store was closed: %w: %w", verb, sluice.ErrUnavailable, err)
		}
		if unknownStatement(err) {
			s.pool.forgetPlans()
		} else if !transient(err) {
			return fmt.Errorf("%s: %w", verb, s.refusal(ctx, typed(err)))
		}
		if fault == nil || ctx.Err() == nil { // that the time was over in the midst of a try is no cause
			fault = err
		}
		select {
		case <-ctx.Done():
			if callerCtx.Err() != nil {
				return fmt.Errorf("%s: %w: %w: %w", verb, callerCtx.Err(), sluice.ErrUnavailable, fault)
			}
			return fmt.Errorf("%s: gave up after %s: %w: %w", verb, s.options.CallTimeout, sluice.ErrUnavailable, fault)
		case <-time.After(wait/2 + rand.N(wait)):
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// refusal says of a statement that the role may not run whether that is because the role only reads.
func (s *Store) refusal(ctx context.Context, err error) error {
	if !isCode(err, "42501") {
		return err
	}
	reader, failed := list(ctx, s.pool, pgx.RowTo[string], readerSQL)
	if failed != nil || len(reader) == 0 {
		return err
	}
	return fmt.Errorf("%w: the role %s may neither write, nor see payloads, results, checkpoints and tokens: %w", sluice.ErrReader, reader[0], err)
}

// transient reports whether the same call may well succeed a little later.
func transient(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "55P03", // lock not available
			"57P01", "57P02", "57P03", // the server shuts down or starts up
			"53300": // too many connections
			return true
		case "0A000":
			return outdatedPlan(server)
		case "23505": // two of one order were about to be let go in the same moment
			return server.ConstraintName == "live_open"
		}
		return strings.HasPrefix(server.Code, "40") || // serialization failure, deadlock
			strings.HasPrefix(server.Code, "08") // connection exception
	}
	return connectionFault(err)
}

func connectionFault(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// typed gives the errors a caller may act on their names.
func typed(err error) error {
	var server *pgconn.PgError
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	}
	if !errors.As(err, &server) {
		return err
	}
	if err := ofFollower(server, err); err != nil {
		return err
	}
	switch server.Code {
	case migration.MovedCode:
		return fmt.Errorf("%w to %s; use that one", sluice.ErrMoved, server.Detail)
	case "42P01", "3F000": // no such table, no such schema
		return fmt.Errorf("%w: run «sluice migrate»: %w", sluice.ErrNotMigrated, err)
	case "57014", // the statement ran into its time-out
		"25006": // a server that only reads, such as a standby
		return fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	}
	return err
}
