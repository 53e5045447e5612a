package safe

import (
	"errors"
	"sync/atomic"
)

// Running records whether a Run is under way. The zero value records none.
type Running struct{ under atomic.Bool }

// Begin records that a Run begins, or returns an error if another is under way. The caller calls
// end at the end.
func (r *Running) Begin() (end func(), err error) {
	if r.under.Swap(true) {
		return nil, errors.New("it runs already: for more at once, make another")
	}
	return func() { r.under.Store(false) }, nil
}
