package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/observe"
)

// observed are the commands whose calls of stores and engines are observed.
var observed = []string{"work", "dispatch", "upkeep", "forward", "enqueue", "demo", "demo-worker", "serve", "dev"}

// watch holds the observers of a command's calls.
type watch struct {
	// observers make the observers of a store, given its product as OpenTelemetry names it, or of an engine, without
	// one. A nil observer is left out.
	observers []func(database string) observe.Observer
	// ends are called in reverse order after the command, and may take until their context ends.
	ends []func(context.Context)
}

// endTime is how long observers may take to end, such as to send the last spans.
const endTime = 3 * time.Second

// beginWatch makes the observers that the flags and environment ask for.
func (a *app) beginWatch(command *cobra.Command) error {
	if !slices.Contains(observed, command.Name()) || command.Parent() != command.Root() {
		return nil
	}
	a.beginTraces()
	if command.Name() == "serve" || command.Name() == "dev" { // always measure, and answer themselves
		return a.measure()
	}
	return a.beginMetrics()
}

// endWatch ends the observers.
func (a *app) endWatch() {
	ctx, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	for _, end := range slices.Backward(a.watch.ends) {
		end(ctx)
	}
}

func (w *watch) of(database string) (all []observe.Observer) {
	for _, make := range w.observers {
		if one := make(database); one != nil {
			all = append(all, one)
		}
	}
	return all
}

// observeStore decorates a store with the command's observers.
func (a *app) observeStore(store sluice.Store, at address) sluice.Store {
	database := "sqlite"
	switch {
	case at.postgres != "":
		database = "postgresql"
	case at.server != "":
		return observe.Store(store, a.watch.of("http")...) // the server shows the gauges
	}
	observed := observe.Store(store, a.watch.of(database)...)
	a.beginGauges(observed)
	return observed
}

// observeEngines decorates engines likewise.
func (a *app) observeEngines(engines map[string]engine.Engine) map[string]engine.Engine {
	all := a.watch.of("")
	if len(all) == 0 {
		return engines
	}
	decorated := make(map[string]engine.Engine, len(engines))
	for name, engine := range engines {
		decorated[name] = observe.Engine(engine, name, all...)
	}
	return decorated
}
