package follow

import (
	"errors"

	"github.com/sluice-queue/sluice"
)

// Apart settles a batch. If a follower's statement fails, Apart settles each item alone, so that
// the others are stored; each failed item gets its error. If all items fail alike, Apart returns
// this as the error of the batch, and the caller may try again.
func Apart(batch []sluice.Settlement, settle func([]sluice.Settlement) ([]error, error)) ([]error, error) {
	errs, err := settle(batch)
	if len(batch) < 2 || !errors.Is(err, sluice.ErrFollower) {
		return errs, err
	}
	errs = make([]error, len(batch))
	failed := 0
	for i := range batch {
		one, alone := settle(batch[i : i+1])
		switch {
		case alone == nil:
			errs[i] = one[0]
		case errors.Is(alone, sluice.ErrFollower):
			errs[i] = alone
			failed++
		default:
			return nil, alone
		}
	}
	if failed == len(batch) {
		return nil, err
	}
	return errs, nil
}
