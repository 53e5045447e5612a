package follow

import (
	"errors"

	"github.com/sluice-queue/sluice"
)

// Apart settles a batch. If the statement of a follower fails, each settlement is tried alone, so that those whose rows can
// be written are; the others have the error. Where all fail alike, it is the error of the batch: the caller may try again.
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
