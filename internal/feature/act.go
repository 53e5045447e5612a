package feature

import (
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice"
)

// Act checks an act, runs do for the jobs, and returns the errors of single jobs as a [*sluice.BatchError]. Rule explains
// a [sluice.ErrNotAllowed].
func Act(verb string, ids []sluice.ID, act *sluice.Act, rule string, do func() ([]error, error)) error {
	if err := act.Check(); err != nil {
		return err
	}
	if len(ids) == 0 {
		return nil
	}
	errs, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	failed := make(map[int]error)
	for i, err := range errs {
		if errors.Is(err, sluice.ErrNotAllowed) {
			err = fmt.Errorf("%s: %w", rule, err)
		}
		if err != nil {
			failed[i] = fmt.Errorf("%s %s: %w", verb, ids[i], err)
		}
	}
	if len(failed) > 0 {
		return &sluice.BatchError{Failed: failed, Total: len(ids)}
	}
	return nil
}
