package sluice

import (
	"fmt"
	"reflect"
)

// GivenStore returns the store. If the store is nil or a nil pointer, GivenStore returns a [Store] whose every verb
// returns an [ErrInvalid]. Constructors that return no error use it.
func GivenStore(store Store) Store {
	if isNil(store) {
		return missingStore{missingEnqueuer{notGiven("store")}}
	}
	return store
}

// GivenEnqueuer returns tx, by the rule of [GivenStore].
func GivenEnqueuer(tx Enqueuer) Enqueuer {
	if isNil(tx) {
		return missingEnqueuer{notGiven("transaction")}
	}
	return tx
}

// CheckGiven returns an [ErrInvalid] if a value is nil, a nil pointer, a nil function, or a store that decorates
// nil. The error names the missing value by field, a noun in the singular.
func CheckGiven(field string, value any) error {
	for {
		switch given := value.(type) {
		case interface{ missing() error }:
			return given.missing()
		case interface{ Unwrap() Store }:
			if !isNil(given) {
				value = given.Unwrap()
				continue
			}
		}
		if isNil(value) {
			return notGiven(field)
		}
		return nil
	}
}

// StoreAs finds an ability of a store beyond [Store], such as [OutageReporter]. It looks at the store and at the
// stores that the store decorates. A decorator has the method Unwrap() Store. Ok reports whether any of them has
// the ability.
func StoreAs[T any](store Store) (found T, ok bool) {
	for store != nil {
		if found, ok = store.(T); ok {
			return found, true
		}
		decorator, decorates := store.(interface{ Unwrap() Store })
		if !decorates {
			break
		}
		store = decorator.Unwrap()
	}
	return found, false
}

// notGiven returns the error for a missing value.
func notGiven(field string) error {
	return invalid(field, fmt.Sprintf("the %s is nil: make one, and pass it", field))
}

// isNil reports whether a value is nil, a nil pointer or a nil function.
func isNil(value any) bool {
	switch of := reflect.ValueOf(value); of.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return of.IsNil()
	}
	return false
}
