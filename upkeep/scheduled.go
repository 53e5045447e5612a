package upkeep

import (
	"context"
	"errors"
	"maps"

	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/internal/event"
)

// withoutPlans removes the errors of scheduled changes that cannot be applied, and returns the others. Such a
// change fails at every look until somebody corrects it, so withoutPlans logs it once.
func (u *Upkeep) withoutPlans(ctx context.Context, err error) error {
	refused := make(map[string]bool)
	var others []error
	for _, failed := range apart(err) {
		var plan *changes.Error
		if !errors.As(failed, &plan) {
			others = append(others, failed)
			continue
		}
		refused[plan.Error()] = true
		if !u.refused[plan.Error()] && ctx.Err() == nil {
			u.log.Emit(event.ChangeRefused, plan.Queue, "change", plan.Change, "error", plan)
		}
	}
	if len(others) > 0 { // the scheduled changes may not have been read
		maps.Copy(refused, u.refused)
	}
	u.refused = refused
	return errors.Join(others...)
}

// apart returns the single errors of a joined error.
func apart(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, apart(one)...)
	}
	return all
}
