// Package safe keeps a panic of a store, such as one of a caller's own decorators, from ending the process: those who
// work in goroutines of their own call stores through here, and a panic becomes the error of the call.
package safe

import (
	"fmt"
	"runtime/debug"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/stat"
)

type (
	// Their names keep the ports apart where they are embedded.
	alerts    = alert.Store
	forecasts = forecast.Store
	stats     = stat.Store

	store struct {
		sluice.Store
		alerts
		forecasts
		stats
	}
)

// Store gives a store whose panics are errors. Of a nil store every verb is an error, too.
func Store(inner sluice.Store) sluice.Store {
	return store{sluice.GivenStore(inner), alert.Given(inner), forecast.Given(inner), stat.Given(inner)}
}

// Unwrap gives the store that is called.
func (s store) Unwrap() sluice.Store { return s.Store }

// caught makes an error of a panic.
func (s store) caught(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("the store panicked: %v\n%s", panicked, debug.Stack())
	}
}
