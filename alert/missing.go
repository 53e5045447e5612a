package alert

import (
	"context"

	"github.com/sluice-queue/sluice"
)

// missing is the port of a store without alerts. Every method returns the reason.
type missing struct{ err error }

func (m missing) AlertBook(context.Context) (Book, error) { return Book{}, m.err }

func (m missing) SaveAlertRule(context.Context, Rule, sluice.Act) (Rule, error) { return Rule{}, m.err }

func (m missing) DeleteAlertRule(context.Context, string, string, sluice.Act) error { return m.err }

func (m missing) SaveAlerts(context.Context, Evaluation) error { return m.err }

func (m missing) SaveSilence(context.Context, Silence, sluice.Act) (Silence, error) {
	return Silence{}, m.err
}

func (m missing) EndSilence(context.Context, sluice.ID, sluice.Act) error { return m.err }

func (m missing) SaveReceiver(context.Context, string) error { return m.err }
