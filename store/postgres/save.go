package postgres

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/saving"
)

//go:embed sql/audited.sql
var auditedSQL string

//go:embed sql/audit_change.sql
var auditChangeSQL string

// home is where the store keeps one thing.
type home[T any] struct {
	// stored reads the thing as it is stored. No rows: the thing is not stored.
	stored func(ctx context.Context, db rowsQuerier) ([]T, error)
	// store writes the thing's next version, and returns the time by the server's clock. If another process has changed the
	// thing in between, the error is a [sluice.ErrConflict]. Nil stored: the thing is new.
	store func(ctx context.Context, tx pgx.Tx, stored *T) (at time.Time, err error)
	// always reads the thing also if the caller has it as new. By default, the statement that stores a new thing finds out
	// whether the thing is new, which saves a round trip.
	always bool
}

// save stores the next version of a thing, with its audit entries, in one transaction.
func save[T any](ctx context.Context, s *Store, verb string, kind saving.Kind[T], thing T, act sluice.Act, at home[T]) (saved T, err error) {
	act = saving.Named(act)
	err = s.call(ctx, verb, func(ctx context.Context, _ bool) error {
		store := func() error {
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
				saved, err = put(ctx, tx, kind, thing, act, at)
				return err
			})
		}
		err := store()
		if errors.Is(err, sluice.ErrConflict) {
			err = store() // the same act may have been done beside this one
		}
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return saved, nil
}

func put[T any](ctx context.Context, tx pgx.Tx, kind saving.Kind[T], thing T, act sluice.Act, at home[T]) (next T, err error) {
	before, err := audited(ctx, tx, act, kind.Object(thing), kind.Name(thing))
	if err != nil {
		return next, err
	}
	var stored *T
	if before || at.always || kind.Version(thing) != 0 {
		if stored, err = read(ctx, tx, at); err != nil {
			return next, err
		}
	}
	done, err := kind.Check(stored, thing, act, before)
	if err != nil {
		return next, err
	}
	if done {
		return *stored, nil
	}
	changedAt, err := at.store(ctx, tx, stored)
	if err != nil {
		return next, err
	}
	next = kind.Next(thing, stored, changedAt, act)
	entries, err := kind.Entries(stored, next, act)
	if err != nil {
		return next, err
	}
	for _, e := range entries {
		if err := exec(ctx, tx, auditChangeSQL, string(e.Object), e.Name, e.Actor, e.Reason, e.Before, e.After, nullUUID(e.ActID)); err != nil {
			return next, err
		}
	}
	return next, nil
}

// audited reports whether the audit has an entry of an act about a thing.
func audited(ctx context.Context, db rowsQuerier, act sluice.Act, object sluice.Object, name string) (bool, error) {
	if act.ID.IsZero() {
		return false, nil
	}
	answer, err := list(ctx, db, pgx.RowTo[bool], auditedSQL, [16]byte(act.ID), string(object), name)
	return err == nil && answer[0], err
}

// once does an act on a thing in a transaction, unless it was done before. It waits for another call of the act.
func (s *Store) once(ctx context.Context, verb string, object sluice.Object, name string, act sluice.Act, do func(ctx context.Context, tx pgx.Tx, again bool) error) error {
	return s.call(ctx, verb, func(ctx context.Context, again bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if !act.ID.IsZero() {
				if err := exec(ctx, tx, actLockSQL, [16]byte(act.ID)); err != nil {
					return err
				}
			}
			if done, err := audited(ctx, tx, act, object, name); err != nil || done {
				return err
			}
			return do(ctx, tx, again)
		})
	})
}

// strike runs a statement that changes or deletes a thing with its audit entry. If it returns no row, there is no such thing, and strike returns
// a [sluice.ErrNotFound].
func (s *Store) strike(ctx context.Context, verb string, object sluice.Object, name string, act sluice.Act, sql string, arguments ...any) error {
	return s.once(ctx, verb, object, name, act, func(ctx context.Context, tx pgx.Tx, again bool) error {
		gone, err := list(ctx, tx, pgx.RowTo[string], sql, arguments...)
		if err == nil && len(gone) == 0 && !again {
			err = sluice.ErrNotFound
		}
		return err
	})
}

// read returns a thing as it is stored. Nil: the thing is not stored.
func read[T any](ctx context.Context, db rowsQuerier, at home[T]) (*T, error) {
	rows, err := at.stored(ctx, db)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// savedRow runs a statement that stores a thing if its version is that which the caller read, and returns the time by the
// server's clock. If no row returns, another process has changed the thing in between.
func savedRow(ctx context.Context, tx pgx.Tx, sql string, arguments ...any) (changedAt time.Time, err error) {
	rows, err := list(ctx, tx, pgx.RowTo[time.Time], sql, arguments...)
	if err != nil {
		return changedAt, err
	}
	if len(rows) == 0 {
		return changedAt, sluice.ErrConflict
	}
	return rows[0].UTC(), nil
}
