// Package saving is the protocol by which every store saves a versioned thing, such as a queue, a tenant or an alert rule.
//
// Begin with [Kind]. A store compares the versions, writes the next version and its audit entries in one transaction, and
// answers a repeated act with what the act has stored.
//
// Read next: save.go of a store.
package saving

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// Kind says how stores save one kind of things.
type Kind[T any] struct {
	// Object and Name choose the audit entries of a thing.
	Object func(thing T) sluice.Object
	Name   func(thing T) string
	// Version returns the version that a thing was read with. 0: the thing is new.
	Version func(thing T) int64
	// Next returns a thing as its next version, stored at an instant of the store's clock. Nil stored: the thing is new.
	Next func(thing T, stored *T, at time.Time, act sluice.Act) T
	// Entries returns the audit entries, in order, when next replaces stored. Nil stored: next is new.
	Entries func(stored *T, next T, act sluice.Act) ([]sluice.AuditEntry, error)
	// Did reports whether an act has stored a thing although the audit lacks the act. Nil: the audit has each act.
	Did func(stored T, act sluice.Act) bool
	// OnlyStored refuses a new thing.
	OnlyStored bool
}

// Named returns an act with an ID, so that a store recognises its repetition after a lost answer.
func Named(act sluice.Act) sluice.Act {
	if act.ID.IsZero() {
		act.ID = sluice.NewID()
	}
	return act
}

// Check decides whether a store writes a thing. Nil stored: nothing is stored. Audited says that the audit has an entry of
// the act about the thing. Done: the act has stored the thing before, and stored is its answer, with what other acts have
// changed since. If they have deleted the thing, the error is a [sluice.ErrNotFound]. If the thing was not read with the
// version that is stored, the error is a [sluice.ErrConflict].
func (k Kind[T]) Check(stored *T, thing T, act sluice.Act, audited bool) (done bool, err error) {
	switch {
	case audited && stored == nil:
		return false, fmt.Errorf("the act has saved it before, and another act has deleted it since: %w", sluice.ErrNotFound)
	case audited || stored != nil && k.Did != nil && k.Did(*stored, act):
		return true, nil
	case stored == nil && (k.OnlyStored || k.Version(thing) != 0), stored != nil && k.Version(*stored) != k.Version(thing):
		return false, sluice.ErrConflict
	}
	return false, nil
}

// Deleted returns the audit entry of an act that deletes a thing.
func Deleted(object sluice.Object, name string, act sluice.Act) sluice.AuditEntry {
	return sluice.AuditEntry{Object: object, Name: name, Event: audit.EventDelete, Actor: act.By, Reason: act.Reason, ActID: act.ID}
}

// Change returns an audit entry for a change. Nil before: the thing is new.
func Change(object sluice.Object, name string, before, after any, act sluice.Act) (sluice.AuditEntry, error) {
	e := sluice.AuditEntry{Object: object, Name: name, Event: audit.EventChange, Actor: act.By, Reason: act.Reason, ActID: act.ID}
	var err error
	if before != nil {
		if e.Before, err = json.Marshal(before); err != nil {
			return e, err
		}
	}
	e.After, err = json.Marshal(after)
	return e, err
}
