package httpapi

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
)

// endsInput names jobs.
type endsInput struct{ Body endsBody }

// endsBody names jobs.
type endsBody struct {
	// IDs are the jobs.
	IDs []sluice.ID `json:"ids" minItems:"1" maxItems:"1000"`
	// Signal asks for a signal when one of the jobs ends within the next minute.
	Signal bool `json:"signal,omitempty"`
}

// endList lists ends.
type endList struct {
	// Ends are the ends of the jobs that have ended. A job that is not there has an end without a state.
	Ends []await.End `json:"ends"`
}

func readEnds(ctx context.Context, c *call, in *endsInput) (endList, error) {
	out := endList{Ends: []await.End{}}
	known, unknown, err := c.known(ctx, in.Body.IDs)
	if err != nil {
		return out, err
	}
	for _, id := range unknown {
		out.Ends = append(out.Ends, await.End{ID: id})
	}
	if len(known) == 0 {
		return out, nil
	}
	port := await.Given(c.api.store)
	if in.Body.Signal {
		if err := port.Await(ctx, known); err != nil {
			return out, err
		}
	}
	found, err := port.Ended(ctx, known)
	out.Ends = append(out.Ends, found...)
	return out, err
}
