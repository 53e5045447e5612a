package sluice

import "errors"

// OutageReporter is a Store that knows the faults of its own connections, also where a caller met them: in a transaction
// of its own on the store's database, for instance.
type OutageReporter interface {
	// Outage reports whether an error says that the store's database, or a connection to it, was out of reach.
	Outage(err error) bool
}

// Outage reports whether an error says that a store was out of reach: an ErrUnavailable, or what an OutageReporter knows
// as a fault of its connections. A worker releases the job of a handler that returns such an error, and counts no attempt.
func Outage(store Store, err error) bool {
	if err == nil || errors.Is(err, ErrUnavailable) {
		return err != nil
	}
	reporter, found := StoreAs[OutageReporter](store)
	return found && reporter.Outage(err)
}
