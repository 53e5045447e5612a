package safe

import (
	"errors"
	"sync/atomic"
)

// Running tells whether a Run is under way. The zero value says that none is.
type Running struct{ under atomic.Bool }

// Begin notes that a Run begins, which a second one beside it may not. The caller calls end when it ends.
func (r *Running) Begin() (end func(), err error) {
	if r.under.Swap(true) {
		return nil, errors.New("it runs already: for more at once, make another")
	}
	return func() { r.under.Store(false) }, nil
}
