package engine

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// GivenEngine returns the engine. For nil, also a nil pointer, it returns an engine whose every method returns a
// [sluice.ErrInvalid].
func GivenEngine(engine Engine) Engine {
	if err := sluice.CheckGiven("engine", engine); err != nil {
		return missingEngine{err}
	}
	return engine
}

// missingEngine answers every method with its error.
type missingEngine struct{ err error }

func (m missingEngine) Check(context.Context, Target) (Report, error) {
	return Report{}, m.err
}

func (m missingEngine) Ended(context.Context, Target, time.Time, []byte) (Page, error) {
	return Page{}, m.err
}

func (m missingEngine) Outcomes(context.Context, Target, []string) ([]Outcome, error) {
	return nil, m.err
}

func (m missingEngine) Start(_ context.Context, _ Target, runs []Run) []error {
	return slices.Repeat([]error{m.err}, len(runs))
}

func (m missingEngine) Cancel(_ context.Context, _ Target, refs []string, _ string) []error {
	return slices.Repeat([]error{m.err}, len(refs))
}
