package httpapi

import (
	"context"
	"fmt"

	"github.com/sluice-queue/sluice"
)

// mostAfter is the most different jobs that the jobs of one body may run after, if the caller has bounds: the server reads each.
const mostAfter = sluice.MaxAfter

// afterCheck refuses jobs of a caller with bounds that run after jobs outside of them. It reads each job once.
type afterCheck struct {
	c     *call
	known map[sluice.ID]error // of the jobs that were read
	most  int                 // the most jobs to read; 0: all
}

func (c *call) afterCheck(most int) *afterCheck {
	return &afterCheck{c, make(map[sluice.ID]error), most}
}

// of returns why a job may not be stored. The rules of jobs come first, because they bound how many others a job runs after.
func (a *afterCheck) of(ctx context.Context, o offered) error {
	if o.err != nil || a.c.caller.None() || len(o.job.After) == 0 {
		return o.err
	}
	if err := o.job.Check(); err != nil {
		return err
	}
	for _, id := range o.job.After {
		err, read := a.known[id]
		if !read {
			if a.most > 0 && len(a.known) == a.most {
				return &sluice.InvalidError{Field: "after", Rule: fmt.Sprintf("jobs of one request run after more than %d others, and the token is bounded; send the rest in another request", a.most)}
			}
			if err = ctx.Err(); err == nil {
				_, err = a.c.job(ctx, id)
			}
			a.known[id] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}
