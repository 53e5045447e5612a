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

// call runs do under the store's deadline, and repeats it after a transient fault. Again is true if an earlier try
// may have been committed.
func (s *Store) call(ctx context.Context, verb string, do func(ctx context.Context, again bool) error) error {
	return s.callBy(ctx, verb, func(ctx context.Context, again bool) error {
		if err := s.mayWork(ctx, s.pool); err != nil {
			return err
		}
		return do(ctx, again)
	})
}

// callAndCheck is call for methods that an idle process uses now and then. The statement of do also reports whether
// the schema needs a newer program, because a separate question would double the load of idle processes. So do may
// run once on a schema that is too new.
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
		if err == nil && !asked { // the schema was checked a moment ago
			_, err = do(ctx, knownSteps())
		}
		return err
	})
}

// callBy is call without the check of the schema.
func (s *Store) callBy(ctx context.Context, verb string, do func(ctx context.Context, again bool) error) error {
	callerCtx := ctx
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	if s.closed.Load() {
		return fmt.Errorf("%s: the store is closed: %w", verb, sluice.ErrUnavailable)
	}
	var fault error // the error of the last try that ran to its end
	wait := 5 * time.Millisecond
	for again := false; ; again = true {
		err := do(ctx, again)
		if err == nil {
			return nil
		}
		if callerCtx.Err() != nil && fault != nil { // the caller's context ended during a try; before that, the store was out of reach
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
		if fault == nil || ctx.Err() == nil { // a timeout in the middle of a try is no cause
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

// refusal explains an error about missing rights if the role only reads.
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

// transient reports whether the same call may succeed a little later.
func transient(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "55P03", // lock not available
			"57P01", "57P02", "57P03", // the server shuts down or starts up
			"57P05", "25P03", // the server has ended the connection, because it was idle for too long
			"53300": // too many connections
			return true
		case "0A000":
			return outdatedPlan(server)
		case "23505": // two jobs of one order were about to become claimable at once
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

// typed wraps errors that callers may act on in the error values of this module.
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
		return fmt.Errorf("%w: run `sluice migrate`: %w", sluice.ErrNotMigrated, err)
	case "22021", "22P05": // the character 0, or bytes that are no UTF-8
		return fmt.Errorf("%w: %w", &sluice.InvalidError{Field: "text", Rule: "must be UTF-8 without the character 0"}, err)
	case "53100": // disk full
		return fmt.Errorf("%w: free some space; nothing acknowledged is lost: %w", sluice.ErrDiskFull, err)
	case "57014", "25P04", // statement timeout, transaction timeout
		"25006": // a read-only server, such as a standby
		return fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	}
	return err
}
