package memory

import (
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/saving"
)

// home is where the store keeps one thing.
type home[T any] struct {
	// stored returns the thing as it is stored. Nil: the thing is not stored.
	stored func() (*T, error)
	store  func(next T) error
}

// in returns the home of a thing in a map.
func in[K comparable, T any](all map[K]T, key K) home[T] {
	return home[T]{
		stored: func() (*T, error) {
			thing, known := all[key]
			if !known {
				return nil, nil
			}
			return &thing, nil
		},
		store: func(next T) error {
			all[key] = next
			return nil
		},
	}
}

// then also does something after the thing is stored.
func (h home[T]) then(do func(next T)) home[T] {
	store := h.store
	h.store = func(next T) error {
		err := store(next)
		if err == nil {
			do(next)
		}
		return err
	}
	return h
}

// after does something before the thing is stored, and stores nothing if that fails.
func (h home[T]) after(do func(next T) error) home[T] {
	store := h.store
	h.store = func(next T) error {
		if err := do(next); err != nil {
			return err
		}
		return store(next)
	}
	return h
}

// save stores the next version of a thing, with its audit entries.
func save[T any](ctx context.Context, s *Store, kind saving.Kind[T], thing T, act sluice.Act, at home[T]) (T, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return *new(T), err
	}
	defer leave()
	return put(s, kind, thing, saving.Named(act), at)
}

// put is save for a caller that holds the store's lock.
func put[T any](s *Store, kind saving.Kind[T], thing T, act sluice.Act, at home[T]) (T, error) {
	stored, err := at.stored()
	if err != nil {
		return *new(T), err
	}
	done, err := kind.Check(stored, thing, act, s.audited(act, kind.Object(thing), kind.Name(thing)))
	if err != nil {
		return *new(T), err
	}
	if done {
		return *stored, nil
	}
	next := kind.Next(thing, stored, s.now(), act)
	entries, err := kind.Entries(stored, next, act)
	if err != nil {
		return *new(T), err
	}
	if err := at.store(next); err != nil {
		return *new(T), err
	}
	for _, e := range entries {
		s.add(e)
	}
	return next, nil
}

// once does an act on a thing, unless it was done before.
func (s *Store) once(ctx context.Context, object sluice.Object, name string, act sluice.Act, do func() error) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if s.audited(act, object, name) {
		return nil
	}
	return do()
}

// strike deletes a thing, and audits this.
func (s *Store) strike(ctx context.Context, object sluice.Object, name string, act sluice.Act, remove func() error) error {
	return s.once(ctx, object, name, act, func() error {
		err := remove()
		if err == nil {
			s.add(saving.Deleted(object, name, act))
		}
		return err
	})
}

// remove deletes a thing from a map.
func remove[K comparable, T any](all map[K]T, key K) error {
	if _, known := all[key]; !known {
		return sluice.ErrNotFound
	}
	delete(all, key)
	return nil
}

// audited reports whether the audit has an entry of an act about a thing.
func (s *Store) audited(act sluice.Act, object sluice.Object, name string) bool {
	return !act.ID.IsZero() && slices.ContainsFunc(s.audit, func(e sluice.AuditEntry) bool {
		return e.ActID == act.ID && e.Object == object && e.Name == name
	})
}
