package trace

import (
	"iter"

	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/observe"
)

// link links a span to the sampled spans that enqueued jobs, up to a limit. count is the number of links.
func (o *Observer) link(span trace.Span, limit int, jobs iter.Seq[*sluice.Claim]) (count int) {
	for job := range jobs {
		if count >= limit {
			break
		}
		if of := o.contextOf(job.Labels); of.IsSampled() {
			span.AddLink(trace.Link{SpanContext: of})
			count++
		}
	}
	return count
}

// claimed iterates over the jobs that a claim got.
func claimed(c *observe.Call) iter.Seq[*sluice.Claim] {
	return func(yield func(*sluice.Claim) bool) {
		for _, job := range c.Claims {
			if !yield(job) {
				return
			}
		}
	}
}

// settled iterates over the settled jobs.
func settled(c *observe.Call) iter.Seq[*sluice.Claim] {
	return func(yield func(*sluice.Claim) bool) {
		for i := range c.Settlements {
			if job := c.Settlements[i].Claim; job != nil && !yield(job) {
				return
			}
		}
	}
}
