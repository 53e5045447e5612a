package httpapi_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// lateJobs is a store that reads a job until the time of the request is over.
type lateJobs struct{ sluice.Store }

func (l lateJobs) Unwrap() sluice.Store { return l.Store }

func (l lateJobs) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	<-ctx.Done()
	return l.Store.Job(context.WithoutCancel(ctx), id)
}

// TestOutcomesThatAreNotStoredAreNotTakenForStored sends outcomes for which the time of the request does not suffice.
func TestOutcomesThatAreNotStoredAreNotTakenForStored(t *testing.T) {
	t.Parallel()
	s := serveStore(t, lateJobs{memory.New(memory.Options{})}, httpapi.Options{Bounds: httpapi.Bounds{Timeout: 200 * time.Millisecond}})
	for range 2 {
		s.enqueue("mail", "")
	}
	claimed := must(s.store.Claim(t.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 2, Lease: time.Minute, Holder: "h:1:a", Token: sluice.NewToken()})).Jobs
	named := func(c *sluice.Claim) string { return fmt.Sprintf(`"id":"%s","token":"%x"`, c.ID, c.Token) }
	r := s.ask("POST", "/work/settle", fmt.Sprintf(`{"worker":"h:1:a","jobs":[{%s,"outcome":"fail","permanent":true},{%s,"outcome":"complete"}]}`, named(claimed[0]), named(claimed[1])))
	s.problem(r, 503, "timeout")
}
