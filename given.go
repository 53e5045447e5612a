package sluice

import (
	"fmt"
	"reflect"
)

// GivenStore returns the store. For nil, also a nil pointer, it returns a Store whose every verb is an ErrInvalid that says
// that no store was given. Constructors that give no error themselves use it.
func GivenStore(store Store) Store {
	if isNil(store) {
		return missingStore{missingEnqueuer{notGiven("store")}}
	}
	return store
}

// GivenEnqueuer is GivenStore for a transaction.
func GivenEnqueuer(tx Enqueuer) Enqueuer {
	if isNil(tx) {
		return missingEnqueuer{notGiven("transaction")}
	}
	return tx
}

// CheckGiven returns an ErrInvalid if a value is nil, also a nil pointer or a nil function, or a store that decorates nil.
// The error says what is missing: the field names it, in the singular.
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

// StoreAs finds what a store can do beside its port, such as [OutageReporter], in it or in a store that it decorates: a decorator
// has the method Unwrap() Store. It reports whether it found anything.
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

func notGiven(field string) error {
	return invalid(field, fmt.Sprintf("no %s was given, it is nil: make one, and hand it over", field))
}

// isNil reports whether nothing can be called on a value.
func isNil(value any) bool {
	switch of := reflect.ValueOf(value); of.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return of.IsNil()
	}
	return false
}
