// Package safe turns a panic of a store, such as one of a caller's decorator, into the error of the
// call. Components that call stores from their own goroutines do so through this package, so a
// panic does not end the process.
//
// Begin with [Store]. [Options] and [Running] check the options and the Run method of such
// components.
//
// Read next: package internal/scrubbed, which builds on it.
package safe

import (
	"fmt"
	"runtime/debug"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/tenancy"
)

type (
	// The names keep the embedded ports apart.
	alerts       = alert.Store
	awaits       = await.Store
	batches      = batch.Store
	deadNotes    = deadletter.Store
	tokens       = access.Store
	policies     = admission.Store
	edits        = edit.Store
	engineRuns   = engine.Store
	explanations = explain.Store
	forecasts    = forecast.Store
	holds        = hold.Store
	limits       = limit.Store
	operations   = operation.Store
	processes    = presence.Store
	pressures    = pressure.Store
	progresses   = progress.Store
	schedules    = schedule.Store
	stats        = stat.Store
	tenants      = tenancy.Store

	store struct {
		sluice.Store
		tokens
		policies
		alerts
		awaits
		batches
		deadNotes
		edits
		engineRuns
		explanations
		forecasts
		holds
		limits
		operations
		processes
		pressures
		progresses
		schedules
		stats
		tenants
	}
)

// Store returns a store whose panics are errors. For a nil store, every method returns an error,
// too.
func Store(inner sluice.Store) sluice.Store {
	return store{sluice.GivenStore(inner), access.Given(inner), admission.Given(inner), alert.Given(inner), await.Given(inner), batch.Given(inner), deadletter.Given(inner), edit.Given(inner), engine.Given(inner), explain.Given(inner), forecast.Given(inner), hold.Given(inner), limit.Given(inner), operation.Given(inner), presence.Given(inner), pressure.Given(inner), progress.Given(inner), schedule.Given(inner), stat.Given(inner), tenancy.Given(inner)}
}

// Unwrap returns the inner store.
func (s store) Unwrap() sluice.Store { return s.Store }

// caught turns a panic into an error.
func (s store) caught(err *error) {
	if panicked := recover(); panicked != nil {
		*err = Panicked("the store", panicked)
	}
}

// Panicked returns the error of a call that panicked with a value, with the stack. Call it while the panic is recovered.
func Panicked(who string, value any) error {
	return fmt.Errorf("%s panicked: %v\n%s", who, value, debug.Stack())
}
