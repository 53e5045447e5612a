package cli

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/observe"
)

// recorded is an open store: what this program does with it is counted, and added to its statistics.
type recorded struct {
	sluice.Store
	recorder *observe.Recorder
	end      func()
}

// record begins to count what is done with a store, until that is closed, beside others that observe it.
func (a *app) record(store sluice.Store, others []observe.Observer) sluice.Store {
	recorder := observe.NewRecorder(store, observe.RecorderOptions{Logger: a.logger()})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = recorder.Run(ctx) // it returns nil
	}()
	end := func() {
		cancel()
		<-ended
	}
	return &recorded{observe.Store(store, append(others, recorder)...), recorder, end}
}

// Unwrap gives the store that is decorated.
func (r *recorded) Unwrap() sluice.Store { return r.Store }

// Close adds the rest, and closes the store.
func (r *recorded) Close() error {
	r.end()
	return r.Store.Close()
}

// counted are engines whose failures to start runs are counted for a store, too.
func counted(store sluice.Store, engines map[string]sluice.Engine) map[string]sluice.Engine {
	r, counts := store.(*recorded)
	if !counts {
		return engines
	}
	out := make(map[string]sluice.Engine, len(engines))
	for name, engine := range engines {
		out[name] = observe.Engine(engine, name, r.recorder)
	}
	return out
}
