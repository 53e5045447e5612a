package httpapi

import (
	"context"
	"errors"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/operation"
)

// batches adds the routes of batches.
func (a *API) batches() {
	route := func(r Route) Route { r.Group, r.noun = "batches", "batch"; return r }
	add(a, route(Route{
		Method: "GET", Path: "/batches", Name: "list-batches", Summary: "list batches", Text: "The newest batches come first.",
		Needs: access.Look, Commands: []string{"batches ls"},
	}), func(ctx context.Context, c *call, in *batchesInput) (wire.BatchList, error) {
		found, err := batch.List(ctx, c.api.store, batch.Filter{Parent: in.Parent, Unfinished: in.Unfinished, Before: in.Before, Limit: in.Limit})
		out := wire.BatchList{Batches: []wire.BatchView{}}
		for _, b := range found {
			out.Batches = append(out.Batches, c.batchOf(b))
		}
		return out, err
	})
	add(a, route(Route{
		Method: "POST", Path: "/batches", Name: "open-batch", Summary: "open a batch",
		Text:  "Enqueue jobs with its id as `batch`, then close it. With an `id` of yours, a batch that is opened again is the same.",
		Needs: access.Enqueue, Commands: []string{"batches open"}, status: 201,
	}), func(ctx context.Context, c *call, in *openBatchInput) (wire.BatchView, error) {
		b := in.Body
		opened, err := batch.Open(ctx, c.api.store, batch.Batch{ID: b.ID, Name: b.Name, Parent: b.Parent, Callbacks: b.Callbacks}, c.act(b.Reason))
		return c.batchOf(opened), err
	})
	add(a, route(Route{
		Method: "GET", Path: "/batches/{id}", Name: "get-batch", Summary: "read a batch with its counts",
		Needs: access.Look | access.Enqueue, Commands: []string{"batches show"},
	}), func(ctx context.Context, c *call, in *JobInput) (wire.BatchView, error) { return c.batch(ctx, in.ID) })
	add(a, route(Route{
		Method: "POST", Path: "/batches/{id}/close", Name: "close-batch", Summary: "let no more jobs into a batch",
		Needs: access.Enqueue, Commands: []string{"batches close"},
	}), func(ctx context.Context, c *call, in *closeBatchInput) (wire.BatchView, error) {
		closing := batch.Close
		if in.Body.All {
			closing = batch.CloseAll
		}
		if err := closing(ctx, c.api.store, in.ID, c.act(in.Body.Reason)); err != nil {
			return wire.BatchView{}, err
		}
		return c.batch(ctx, in.ID)
	})
	for _, s := range []struct {
		verb, summary, text string
		do                  func(context.Context, sluice.Store, sluice.ID, sluice.Act) (operation.Operation, error)
	}{
		{"cancel", "close a batch, and cancel its unfinished jobs", "", batch.Cancel},
		{"pause", "hold the waiting jobs of a batch, and later ones", "Needs a reason.", batch.Pause},
		{"resume", "end the pause of a batch", "", batch.Resume},
	} {
		add(a, route(Route{
			Method: "POST", Path: "/batches/{id}/" + s.verb, Name: s.verb + "-batch", Summary: s.summary, Text: s.text,
			Needs: access.Operate, Commands: []string{"batches " + s.verb},
		}), func(ctx context.Context, c *call, in *reasonInput) (operation.Operation, error) {
			return s.do(ctx, c.api.store, in.ID, c.act(in.Body.Reason))
		})
	}
	a.batchSaving(route)
	add(a, route(Route{
		Method: "POST", Path: "/batches/{id}/retry", Name: "retry-batch", Summary: "requeue the dead jobs of a batch", Text: "Needs a reason.",
		Needs: access.Operate, Commands: []string{"batches retry"},
	}), func(ctx context.Context, c *call, in *retryBatchInput) (operation.Operation, error) {
		how := operation.Operation{Canary: in.Body.Canary, StopIfFailed: in.Body.StopIfFailed}
		var err error
		if how.Rate, err = in.Body.rate(); err != nil {
			return how, err
		}
		return batch.Retry(ctx, c.api.store, in.ID, how, c.act(in.Body.Reason))
	})
}

// batchSaving adds the route for programs that start the operation of a pause themselves.
func (a *API) batchSaving(route func(Route) Route) {
	add(a, route(Route{
		Method: "PUT", Path: "/batches/{id}/pause", Name: "save-batch-pause", Summary: "store whether a batch is paused",
		Text: "Starts no operation: later jobs are held, and the present ones stay as they are.", Needs: access.Operate, Commands: []string{"batches pause"},
	}), func(ctx context.Context, c *call, in *savePauseInput) (done, error) {
		act, paused := c.act(in.Body.Reason), c.act(in.Body.Paused)
		if err := errors.Join(act.Check(), paused.Check()); err != nil {
			return done{}, err
		}
		return done{true}, batch.Given(c.api.store).PauseBatch(ctx, in.ID, in.Body.Paused, act)
	})
}

// batchesInput chooses batches.
type batchesInput struct {
	BeforeInput
	Parent     sluice.ID `query:"parent" doc:"only batches directly in this one" format:"uuid"`
	Unfinished bool      `query:"unfinished" doc:"only batches that are not complete"`
}

// batchOf shows a batch, without the payloads of its callbacks unless the caller may read them.
func (c *call) batchOf(b batch.Batch) wire.BatchView {
	for _, callback := range []**batch.Callback{&b.OnComplete, &b.OnSuccess, &b.OnDeath} {
		if *callback != nil && !c.reads() {
			shown := **callback
			shown.Payload, *callback = nil, &shown
		}
	}
	return wire.BatchViewOf(b)
}

// batch reads a batch.
func (c *call) batch(ctx context.Context, id sluice.ID) (wire.BatchView, error) {
	b, err := batch.Read(ctx, c.api.store, id)
	if err != nil {
		return wire.BatchView{}, err
	}
	return c.batchOf(b), nil
}

// openBatchInput opens a batch.
type openBatchInput struct{ Body wire.OpenBatchBody }

// savePauseInput pauses a batch.
type savePauseInput struct {
	JobInput
	Body wire.PauseBatchBody
}

// closeBatchInput closes a batch.
type closeBatchInput struct {
	JobInput
	Body wire.CloseBatchBody
}

// retryBatchInput requeues the dead jobs of a batch.
type retryBatchInput struct {
	JobInput
	Body retryBody
}

// retryBody says how fast jobs are requeued.
type retryBody struct {
	wire.ReasonBody
	PaceBody
	// Canary is how many jobs to requeue first.
	Canary int `json:"canary,omitempty" minimum:"0" maximum:"1000"`
	// StopIfFailed is the greatest share, 0 to 1, of requeued jobs that may fail again.
	StopIfFailed float64 `json:"stop_if_failed,omitempty" minimum:"0" maximum:"1"`
}

// PaceBody is the rate of an operation.
type PaceBody struct {
	// Rate is how many jobs per time, such as 20/s. Missing: as fast as upkeep can.
	Rate string `json:"rate,omitempty" maxLength:"20"`
}

func (p PaceBody) rate() (sluice.Rate, error) {
	if p.Rate == "" {
		return sluice.Rate{}, nil
	}
	rate, err := sluice.ParseRate(p.Rate)
	if err != nil {
		return rate, &sluice.InvalidError{Field: "rate", Rule: "must be a rate such as 20/s"}
	}
	return rate, nil
}
