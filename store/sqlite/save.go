package sqlite

import (
	"context"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
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
		done, err := kind.Check(stored, thing, act, func(act sluice.ID, object sluice.Object, name string) (bool, error) {
			answer, err := list(tx, scanOne[bool], auditedSQL, act[:], string(object), name)
			return err == nil && answer[0], err
		})
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

// strike deletes a thing by its name, and audits this. If there is none, strike returns a [sluice.ErrNotFound].
func (s *Store) strike(ctx context.Context, verb, statement string, object sluice.Object, name string, act sluice.Act) error {
	return s.write(ctx, verb, func(tx runner, again bool) error {
		gone, err := affected(tx.exec(statement, name))
		switch {
		case err != nil:
			return err
		case gone == 0 && again:
			return nil
		case gone == 0:
			return sluice.ErrNotFound
		}
		return tell(tx, sluice.AuditEntry{Object: object, Name: name, Event: audit.EventDelete, Actor: act.By, Reason: act.Reason, ActID: act.ID})
	})
}
