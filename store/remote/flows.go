package remote

import (
	"context"
	"net/http"

	"github.com/sluice-queue/sluice/flow"
)

// StartFlow starts a flow, for package flow. The server stores its jobs by the settings of their queues.
func (s *Store) StartFlow(ctx context.Context, f flow.Flow) error {
	return s.call(ctx, request{verb: "start a flow", method: http.MethodPost, path: "/flows", body: asJSON(f)})
}
