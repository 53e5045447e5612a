// Package feature holds the code that packages of features share: alert, forecast and stat find their port in a store, and
// refuse bad fields, in the same way.
package feature

import (
	"fmt"

	"github.com/sluice-queue/sluice"
)

// Port finds the port of a feature in a store, or in a store that it decorates. The error is a [sluice.ErrInvalid] for nil,
// and a [sluice.ErrNotFound] for a store without the feature; lacks says what such a store does, such as "keeps no alerts".
func Port[T any](store sluice.Store, lacks string) (port T, err error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return port, err
	}
	port, found := sluice.StoreAs[T](store)
	if !found {
		return port, fmt.Errorf("a %T %s; a decorator of a store that does needs a method Unwrap() sluice.Store: %w", store, lacks, sluice.ErrNotFound)
	}
	return port, nil
}

// Invalid returns a [sluice.ErrInvalid] of a field that breaks a rule.
func Invalid(field, rule string) error { return &sluice.InvalidError{Field: field, Rule: rule} }
