package console_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
)

// clocked is a site whose store has a clock that the test sets.
type clocked struct {
	*site
	at time.Time
}

// openClocked serves a console over a store whose clock stands still, at the begin of a minute some time ago.
func openClocked(t *testing.T, ago time.Duration) *clocked {
	t.Helper()
	c := &clocked{at: time.Now().Add(-ago).Truncate(time.Minute)}
	store := memory.New(memory.Options{Now: func() time.Time { return c.at }, NoStatistics: true})
	c.site = openOver(t, store, access.Caller{Name: "ann", Role: access.RoleOperator}, console.Options{}, httpapi.Options{})
	return c
}

// complete ends a claim well.
func (c *clocked) complete(claim *sluice.Claim) {
	c.t.Helper()
	c.settle(sluice.Settlement{ID: claim.ID, Token: claim.Token, Event: sluice.EventComplete})
}

func TestATimelineNamesWhatProbablyHeldAJob(t *testing.T) {
	t.Parallel()
	c := openClocked(t, time.Hour)
	c.set("mail", "one after the other", func(s *sluice.Settings) { s.TenantConcurrency = 1 })
	acme := sluice.EnqueueOptions{Tenant: "acme"}
	c.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: acme})
	id := c.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: acme})
	other := c.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "globex", DueAt: c.at.Add(2 * time.Minute)}})
	c.at = c.at.Add(40 * time.Second) // until a worker comes
	first := c.claim("mail")[0]
	c.count("mail", time.Since(c.at), stat.Counts{Claimed: 1})
	c.at = c.at.Add(192 * time.Second)
	c.complete(first)
	for _, claim := range c.claim("mail") {
		c.at = c.at.Add(time.Second)
		c.complete(claim)
	}
	c.contains("/jobs/"+id.String(), "probably waited for a worker", "nobody claimed a job of the queue meanwhile", "40 s",
		"probably waited for tenant concurrency", "acme had 1 in flight, as many as are allowed today", "3 min 12 s", "!which limit held it is not known")
	c.contains("/jobs/"+other.String(), "waited for its due time", "which limit held it is not known", "!probably")
}

func TestATimelineTellsManyPartsOfAWaitInOneLine(t *testing.T) {
	t.Parallel()
	c := openClocked(t, time.Hour)
	c.set("mail", "one after the other", func(s *sluice.Settings) { s.Concurrency = 1 })
	for range 3 {
		c.enqueue(sluice.NewJob{Queue: "mail"})
	}
	id := c.enqueue(sluice.NewJob{Queue: "mail"})
	for range 3 {
		claim := c.claim("mail")[0]
		c.at = c.at.Add(20 * time.Second)
		c.complete(claim)
		c.at = c.at.Add(2 * time.Second) // until the worker looks again
	}
	c.complete(c.claim("mail")[0])
	c.contains("/jobs/"+id.String(), "probably waited for the concurrency of its queue, on and off", "in 1 min of it the queue had 1 in flight", "1 min 4 s")
}

func TestATimelineNamesTheOrderThatProbablyHeldAJob(t *testing.T) {
	t.Parallel()
	c := openClocked(t, time.Hour)
	inOrder := sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{OrderKey: "account-7"}}
	c.enqueue(inOrder)
	id := c.enqueue(inOrder)
	first := c.claim("mail")[0]
	c.at = c.at.Add(time.Minute)
	c.complete(first)
	c.at = c.at.Add(10 * time.Second)
	c.complete(c.claim("mail")[0])
	c.contains("/jobs/"+id.String(), "probably waited for earlier jobs of its order key", "the last was", first.ID.String(), "1 min", "10 s", "!probably waited for a worker")
}

func TestATimelineNamesTheRateThatProbablyHeldAJob(t *testing.T) {
	t.Parallel()
	c := openClocked(t, time.Hour)
	c.set("mail", "the bank asks", func(s *sluice.Settings) { s.Rate = sluice.RatePerSecond(1) })
	var id sluice.ID
	for range 90 {
		id = c.enqueue(sluice.NewJob{Queue: "mail"})
	}
	for range 9 {
		claimed := 0
		for range 10 {
			for _, claim := range c.claim("mail") {
				claimed++
				c.complete(claim)
			}
			c.at = c.at.Add(time.Second)
		}
		c.count("mail", time.Since(c.at)+time.Second, stat.Counts{Claimed: int64(claimed)})
	}
	c.contains("/jobs/"+id.String(), "probably waited for the rate of its queue", "as fast as the rate of today allows, 1/s")
}
