package migration

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

// Guard reports to an open store whether its program may still use the schema, because another
// program may migrate the database at any time. The guard looks at most once per
// sluice.SettingsInterval. Many goroutines may use it. The zero value allows everything until Arm.
type Guard struct {
	knows   atomic.Int64 // the newest step that the program knows; 0: not armed
	started time.Time
	looked  atomic.Int64 // when the last look began, in ns since started
	looking atomic.Bool
	refused atomic.Pointer[error]
}

// Arm starts the guard. The caller has just checked the schema, and knows its steps up to this one.
func (g *Guard) Arm(knows int) {
	g.started = time.Now()
	g.knows.Store(int64(knows))
}

// Check returns a [sluice.ErrNewerSchema] while the database has a step that needs a newer program,
// and a [sluice.ErrUnavailable] while jobs are being moved into it. Look reads the steps that need
// a program which knows more than the given step. While one caller looks, others get the last
// result. If look fails, Check returns its error.
func (g *Guard) Check(look func(knows int) ([]Applied, error)) error {
	knows := int(g.knows.Load())
	if knows == 0 {
		return nil
	}
	now := time.Since(g.started)
	if now-time.Duration(g.looked.Load()) < sluice.SettingsInterval || !g.looking.CompareAndSwap(false, true) {
		return g.last()
	}
	defer g.looking.Store(false)
	tooNew, err := look(knows)
	if err != nil {
		return err
	}
	refusal := Refusal(knows, tooNew)
	g.refused.Store(&refusal)
	g.looked.Store(int64(now))
	return refusal
}

func (g *Guard) last() error {
	if err := g.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// Refusal returns the error for a program that knows this many steps, on a database with these
// steps. Nil: the program may use it.
func Refusal(knows int, applied []Applied) error {
	for _, a := range applied {
		switch {
		case a.Version == Moving:
			return fmt.Errorf("jobs are being moved into this store, or were and that was broken off: run `sluice move` with it as --to, which goes on: %w", sluice.ErrUnavailable)
		case a.Version > knows && a.WorksFrom > knows:
			return fmt.Errorf("the database has had schema step %d, which needs a program that knows step %d; this one knows %d: deploy the newer program: %w",
				a.Version, a.WorksFrom, knows, sluice.ErrNewerSchema)
		}
	}
	return nil
}
