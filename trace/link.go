package trace

import (
	"iter"

	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/observe"
)

// linksTo links to the spans that enqueued jobs, those that are sampled, at most so many.
func (o *Observer) linksTo(limit int, jobs iter.Seq[*sluice.Claim]) (links []trace.Link) {
	for job := range jobs {
		if len(links) >= limit {
			break
		}
		if of := o.contextOf(job.Labels); of.IsSampled() {
			links = append(links, trace.Link{SpanContext: of})
		}
	}
	return links
}

// claimed are the jobs that a claim got.
func claimed(c *observe.Call) iter.Seq[*sluice.Claim] {
	return func(yield func(*sluice.Claim) bool) {
		for _, job := range c.Claims {
			if !yield(job) {
				return
			}
		}
	}
}

// settled are the jobs that were settled.
func settled(c *observe.Call) iter.Seq[*sluice.Claim] {
	return func(yield func(*sluice.Claim) bool) {
		for i := range c.Settlements {
			if job := c.Settlements[i].Claim; job != nil && !yield(job) {
				return
			}
		}
	}
}
