package migration

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

// Guard tells a store that is open whether its program may still work on the schema: another program may migrate the
// database at any time. It looks at most once per sluice.SettingsInterval. It may be used by many goroutines. The zero
// value lets everything through until Arm.
type Guard struct {
	knows   atomic.Int64 // the newest step that the program knows; 0: not armed
	started time.Time
	looked  atomic.Int64 // when the last look began, in ns since started
	looking atomic.Bool
	refused atomic.Pointer[error]
}

// Arm begins to guard. The schema was looked at just now, and the program knows its steps up to this one.
func (g *Guard) Arm(knows int) {
	g.started = time.Now()
	g.knows.Store(int64(knows))
}

// Check returns an ErrNewerSchema while the database has a step that needs a newer program, and an ErrUnavailable while
// jobs are being moved into it. Look reads the steps that need a program which knows more than the given step. While one
// caller looks, the others go by the look before. If the look fails, Check returns its error.
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

// Refusal is the error of a program that knows so many steps on a database that has had these; nil: it may work.
func Refusal(knows int, applied []Applied) error {
	for _, a := range applied {
		switch {
		case a.Version == Moving:
			return fmt.Errorf("jobs are being moved into this store, or were and that was broken off: run «sluice move» with it as --to, which goes on: %w", sluice.ErrUnavailable)
		case a.Version > knows && a.WorksFrom > knows:
			return fmt.Errorf("the database has had schema step %d, which needs a program that knows step %d; this one knows %d: deploy the newer program: %w",
				a.Version, a.WorksFrom, knows, sluice.ErrNewerSchema)
		}
	}
	return nil
}
