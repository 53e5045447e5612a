package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Result reads the result of an earlier node for a job of the same flow: in a handler, give job.Job. A node without a result
// gives the zero value.
//
// A node that is dead or cancelled is an [*await.FailedError]. A node that has not ended is a [sluice.ErrNotAllowed]. A node that
// is not stored is a [sluice.ErrNotFound]: the flow has no such node, or upkeep has deleted its job; keep_completed of its queue
// must be longer than the flow takes, and so must keep_results: else the error is an [*await.RemovedError]. A result that does not fit is a [sluice.ErrInvalid].
func Result[T any](ctx context.Context, store sluice.Store, job sluice.Job, node string) (result T, err error) {
	flow, err := Of(job)
	if err != nil {
		return result, err
	}
	ends, err := ended(ctx, store, []sluice.ID{NodeID(flow, node)})
	if err != nil {
		return result, fmt.Errorf("result of node %q: %w", node, err)
	}
	return result, decode(ends[0].Result, fmt.Sprintf("node %q", node), &result)
}

// Results reads the results of a map's jobs for a later job of the same flow, in the order of the elements. Errors are those of
// [Result].
func Results[T any](ctx context.Context, store sluice.Store, job sluice.Job, node string) ([]T, error) {
	flow, err := Of(job)
	if err != nil {
		return nil, err
	}
	texts, err := mapResults(ctx, store, flow, node)
	if err != nil {
		return nil, fmt.Errorf("results of node %q: %w", node, err)
	}
	results := make([]T, len(texts))
	for i, text := range texts {
		if err := decode(text, fmt.Sprintf("element %d of node %q", i, node), &results[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Of returns the ID of the flow of a job. A job of no flow is a [sluice.ErrInvalid].
func Of(job sluice.Job) (sluice.ID, error) {
	id, err := sluice.ParseID(job.Labels[LabelFlow])
	if err != nil {
		return id, feature.Invalid("job", fmt.Sprintf("%s is not of a flow: it has no label %q with an id", job.ID, LabelFlow))
	}
	return id, nil
}

func decode(text json.RawMessage, what string, into any) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return feature.Invalid("result", fmt.Sprintf("that of %s does not fit %T: %v", what, into, err))
	}
	return nil
}

// mapResults returns the results of a map's jobs as JSON.
func mapResults(ctx context.Context, store sluice.Store, flow sluice.ID, node string) ([]json.RawMessage, error) {
	ends, err := ended(ctx, store, []sluice.ID{NodeID(flow, node)})
	if err != nil {
		return nil, err
	}
	var of mapped
	if err := decode(ends[0].Result, "the map", &of); err != nil {
		return nil, err
	}
	if ends, err = ended(ctx, store, elementIDs(flow, node, of.Elements)); err != nil {
		return nil, err
	}
	texts := make([]json.RawMessage, len(ends))
	for i, end := range ends {
		texts[i] = end.Result
	}
	return texts, nil
}

func elementIDs(flow sluice.ID, node string, count int) []sluice.ID {
	ids := make([]sluice.ID, count)
	for i := range ids {
		ids[i] = ElementID(flow, node, i)
	}
	return ids
}

// ended returns the ends of jobs that have completed, in the order of the IDs. The first that has not is the error.
func ended(ctx context.Context, store sluice.Store, ids []sluice.ID) ([]await.End, error) {
	ends, err := endsOf(ctx, store, ids)
	if err != nil {
		return nil, err
	}
	out := make([]await.End, len(ids))
	for i, id := range ids {
		end, over := ends[id]
		switch {
		case !over:
			return nil, fmt.Errorf("job %s has not ended: %w", id, sluice.ErrNotAllowed)
		case end.State == "":
			return nil, fmt.Errorf("job %s is not stored; the flow has no such node, or upkeep has deleted the job: keep_completed of its queue must be longer than the flow takes: %w", id, sluice.ErrNotFound)
		case end.State != sluice.StateCompleted:
			return nil, &await.FailedError{End: end}
		case end.ResultRemoved:
			return nil, &await.RemovedError{End: end}
		}
		out[i] = end
	}
	return out, nil
}

// endsBatch is how many ends one call of the store reads.
const endsBatch = 1000

// endsOf returns the ends of those jobs that have ended. A job that is not stored has an end without a state.
func endsOf(ctx context.Context, store sluice.Store, ids []sluice.ID) (map[sluice.ID]await.End, error) {
	out := make(map[sluice.ID]await.End, len(ids))
	for part := range slices.Chunk(ids, endsBatch) {
		ends, err := await.Given(store).Ended(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, end := range ends {
			out[end.ID] = end
		}
	}
	return out, nil
}
