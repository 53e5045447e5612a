package remote

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/internal/wire"
)

// batchPath is the path of a batch.
func batchPath(id sluice.ID, rest string) string { return "/batches/" + id.String() + rest }

// OpenBatch stores a new batch, or returns the one that is stored.
func (s *Store) OpenBatch(ctx context.Context, b batch.Batch, act sluice.Act) (batch.Batch, error) {
	var view wire.BatchView
	err := s.call(ctx, request{
		verb: "open a batch", method: http.MethodPost, path: "/batches", act: &act, out: &view,
		body: asJSON(wire.OpenBatchBody{ID: b.ID, Name: b.Name, Parent: b.Parent, Callbacks: b.Callbacks, ReasonBody: why(act)}),
	})
	return withPayloads(view.Read(), b.Callbacks), err
}

// withPayloads returns a batch with the given payloads where the server shows none: to some tokens it shows no payload. It has
// compared them.
func withPayloads(opened batch.Batch, given batch.Callbacks) batch.Batch {
	for _, call := range []struct{ shown, given *batch.Callback }{
		{opened.OnComplete, given.OnComplete}, {opened.OnSuccess, given.OnSuccess}, {opened.OnDeath, given.OnDeath},
	} {
		if call.shown != nil && call.given != nil && len(call.shown.Payload) == 0 {
			call.shown.Payload = call.given.Payload
		}
	}
	return opened
}

// CloseBatch closes a batch; with all, the batches in it too.
func (s *Store) CloseBatch(ctx context.Context, id sluice.ID, all bool, act sluice.Act) error {
	return s.call(ctx, request{
		verb: "close a batch", method: http.MethodPost, path: batchPath(id, "/close"), act: &act, body: asJSON(wire.CloseBatchBody{All: all, ReasonBody: why(act)}),
	})
}

// Batch returns a batch.
func (s *Store) Batch(ctx context.Context, id sluice.ID) (batch.Batch, error) {
	var view wire.BatchView
	err := s.call(ctx, request{verb: "read a batch", path: batchPath(id, ""), out: &view})
	return view.Read(), err
}

// Batches lists batches, the newest first.
func (s *Store) Batches(ctx context.Context, filter batch.Filter) ([]batch.Batch, error) {
	size, err := feature.PageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	q := params{}
	q.id("parent", filter.Parent)
	if filter.Unfinished {
		q.text("unfinished", "true")
	}
	before := filter.Before
	return pages(size, func(size int) (found []batch.Batch, err error) {
		if !before.IsZero() {
			q["before"] = []string{before.String()}
		}
		q["limit"] = []string{strconv.Itoa(size)}
		var answer wire.BatchList
		err = s.call(ctx, request{verb: "list batches", path: "/batches", query: q.values(), out: &answer})
		for _, view := range answer.Batches {
			found, before = append(found, view.Read()), view.ID
		}
		return found, err
	})
}

// PauseBatch sets the reason for which a batch is paused; empty: it is not.
func (s *Store) PauseBatch(ctx context.Context, id sluice.ID, reason string, act sluice.Act) error {
	body := wire.PauseBatchBody{Paused: reason, ReasonBody: why(act)}
	return s.call(ctx, saving("pause a batch", batchPath(id, "/pause"), &act, body, nil))
}

// AdvanceBatches is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) AdvanceBatches(context.Context, int) (batch.Advanced, error) {
	return batch.Advanced{}, s.theServer("To advance batches")
}

// ForgetBatches is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) ForgetBatches(context.Context, time.Duration, int) (int, error) {
	return 0, s.theServer("To forget batches")
}

// RecountBatch is an [*UnsupportedError].
func (s *Store) RecountBatch(context.Context, sluice.ID) (batch.Recount, error) {
	return batch.Recount{}, s.theDatabase("To recount a batch")
}
