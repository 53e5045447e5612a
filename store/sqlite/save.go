package sqlite

import (
	"context"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/saving"
)

//go:embed sql/audited.sql
var auditedSQL string

// home is where the store keeps one thing.
type home[T any] struct {
	// stored reads the thing as it is stored. No rows: the thing is not stored.
	stored func(tx runner) ([]T, error)
	store  func(tx runner, next T) error
}

// save stores the next version of a thing, with its audit entries, in one transaction.
func save[T any](ctx context.Context, s *Store, verb string, kind saving.Kind[T], thing T, act sluice.Act, at home[T]) (saved T, err error) {
	act = saving.Named(act)
	err = s.write(ctx, verb, func(tx runner, _ bool) error {
		rows, err := at.stored(tx)
		if err != nil {
			return err
		}
		var stored *T
		if len(rows) > 0 {
			stored = &rows[0]
		}
		before, err := audited(tx, act, kind.Object(thing), kind.Name(thing))
		if err != nil {
			return err
		}
		done, err := kind.Check(stored, thing, act, before)
		if err != nil {
			return err
		}
		if done {
			saved = *stored
			return nil
		}
		saved, err = put(tx, kind, stored, thing, act, at)
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return saved, nil
}

// put replaces a stored thing by its next version, and audits this. Nil stored: the thing is new.
func put[T any](tx runner, kind saving.Kind[T], stored *T, thing T, act sluice.Act, at home[T]) (next T, err error) {
	next = kind.Next(thing, stored, time.UnixMicro(now()).UTC(), act)
	entries, err := kind.Entries(stored, next, act)
	if err != nil {
		return next, err
	}
	if err := at.store(tx, next); err != nil {
		return next, err
	}
	for _, e := range entries {
		if err := tell(tx, e); err != nil {
			return next, err
		}
	}
	return next, nil
}

// audited reports whether the audit has an entry of an act about a thing.
func audited(tx runner, act sluice.Act, object sluice.Object, name string) (bool, error) {
	if act.ID.IsZero() {
		return false, nil
	}
	answer, err := list(tx, scanOne[bool], auditedSQL, act.ID[:], string(object), name)
	return err == nil && answer[0], err
}

// once does an act on a thing in a transaction, unless it was done before.
func (s *Store) once(ctx context.Context, verb string, object sluice.Object, name string, act sluice.Act, do func(tx runner) error) error {
	return s.write(ctx, verb, func(tx runner, _ bool) error {
		done, err := audited(tx, act, object, name)
		if err != nil || done {
			return err
		}
		return do(tx)
	})
}

// strike deletes a thing, and audits this. Remove returns how many it has removed; 0 is a [sluice.ErrNotFound].
func (s *Store) strike(ctx context.Context, verb string, object sluice.Object, name string, act sluice.Act, remove func(tx runner) (int64, error)) error {
	act = saving.Named(act)
	return s.once(ctx, verb, object, name, act, func(tx runner) error {
		gone, err := remove(tx)
		if err != nil {
			return err
		}
		if gone == 0 {
			return sluice.ErrNotFound
		}
		return tell(tx, saving.Deleted(object, name, act))
	})
}

// deleting makes a removal by one statement.
func deleting(statement string, arguments ...any) func(tx runner) (int64, error) {
	return func(tx runner) (int64, error) { return affected(tx.exec(statement, arguments...)) }
}
