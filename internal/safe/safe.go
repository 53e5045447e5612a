// Package safe keeps a panic of a store, such as one of a caller's own decorators, from ending the process: those who
// work in goroutines of their own call stores through here, and a panic becomes the error of the call.
package safe

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sluice-queue/sluice"
)

type store struct{ sluice.Store }

// Store gives a store whose panics are errors. Of a nil store every verb is an error, too.
func Store(inner sluice.Store) sluice.Store { return store{inner} }

// Unwrap gives the store that is called.
func (s store) Unwrap() sluice.Store { return s.Store }

// Given returns an error if there is no store beneath all decorators that say what they decorate.
func Given(store sluice.Store) error {
	for store != nil {
		decorated, is := store.(interface{ Unwrap() sluice.Store })
		if !is {
			return nil
		}
		store = decorated.Unwrap()
	}
	return errNone
}

var errNone = errors.New("no store was given: open one, and hand it over")

// caught makes an error of a panic.
func (s store) caught(err *error) {
	panicked := recover()
	switch {
	case panicked == nil:
	case s.Store == nil:
		*err = errNone
	default:
		*err = fmt.Errorf("the store panicked: %v\n%s", panicked, debug.Stack())
	}
}
