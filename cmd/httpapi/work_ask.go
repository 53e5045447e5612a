package httpapi

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// ask claims once from the store. Each claim comes here. It goes on if the client leaves. Used are the settings by which the request was
// made, by queue.
func (c *call) ask(ctx context.Context, o *claimOrder, request sluice.ClaimRequest, used map[string]sluice.Settings) (claimedList, sluice.Claimed, error) {
	out := claimedList{Jobs: []claimedJob{}}
	request.Holder, request.Token = o.holder, c.claimToken(o)
	leave, err := c.api.board.enter(ctx, request.Token)
	if err != nil {
		return out, sluice.Claimed{}, err
	}
	defer leave()
	work, stop := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer stop()
	asked := time.Now()
	claimed, err := c.api.store.Claim(work, request)
	if err != nil {
		return out, claimed, err
	}
	claimed.Jobs = c.ownClaims(claimed.Jobs)
	if ctx.Err() != nil && !o.named() && len(claimed.Jobs) > 0 {
		c.handBack(work, o.holder, claimed.Jobs)
		return out, claimed, ctx.Err()
	}
	if request.Again || time.Since(asked) > o.shortestLease(used)/3 {
		if claimed.Jobs, err = c.holdAnew(work, o, claimed.Jobs, used); err != nil {
			return out, claimed, err
		}
	}
	for _, claim := range claimed.Jobs {
		settings := used[claim.Queue]
		out.Jobs = append(out.Jobs, claimedOf(claim, settings, o.leaseIn(settings)))
	}
	out.ClaimedDetail = extrasOf(claimed)
	return out, claimed, nil
}

// shortestLease returns the shortest lease in queues with these settings.
func (o *claimOrder) shortestLease(used map[string]sluice.Settings) time.Duration {
	shortest := maxLease
	for _, settings := range used {
		shortest = min(shortest, o.leaseIn(settings))
	}
	return shortest
}

// named says that the client can send the claim again. No server hands back the jobs of such a claim: the client may have left one server,
// and may have got the jobs from another one, which found them by the token.
func (o *claimOrder) named() bool { return o.Token != "" || o.Proof != "" }

// claimedBefore returns the jobs that a claim has, if it was sent before. It claims nothing.
func (c *call) claimedBefore(ctx context.Context, o *claimOrder) (claimedList, sluice.Claimed, error) {
	request := sluice.ClaimRequest{Again: true}
	for _, queue := range o.Queues {
		request.Queues = append(request.Queues, sluice.QueueClaim{Queue: queue})
	}
	return c.ask(ctx, o, request, make(map[string]sluice.Settings))
}

// claimTogether claims from several queues at once.
func (c *call) claimTogether(ctx context.Context, o *claimOrder) (claimedList, error) {
	request, used := sluice.ClaimRequest{Limit: o.Limit, Again: o.Again}, make(map[string]sluice.Settings)
	for _, queue := range o.Queues {
		settings, err := c.api.board.settingsOf(ctx, queue)
		if err != nil {
			return claimedList{}, err
		}
		limit := o.Limits[queue]
		if limit < 1 {
			return claimedList{}, &sluice.InvalidError{Field: "limits", Rule: fmt.Sprintf("must say a number above 0 for the queue %s", queue)}
		}
		if c.restOf(o, queue, settings) > 0 {
			continue
		}
		used[queue] = settings
		request.Queues = append(request.Queues, sluice.QueueClaim{Queue: queue, Limit: limit, Lease: o.leaseIn(settings), Ageing: settings.Ageing})
	}
	if len(request.Queues) == 0 {
		return claimedList{Jobs: []claimedJob{}}, nil
	}
	out, _, err := c.ask(ctx, o, request, used)
	out.ClaimedDetail = ClaimedDetail{} // of one queue alone
	return out, err
}

// ownClaims leaves out jobs outside of the caller's bounds. A claim that is sent again gets what it got before, when the token may have
// had other bounds.
func (c *call) ownClaims(jobs []*sluice.Claim) []*sluice.Claim {
	return slices.DeleteFunc(jobs, func(claim *sluice.Claim) bool { return !c.caller.Job(claim.Queue, claim.Tenant) })
}

// holdAnew renews the leases of jobs of a claim that was sent again, or that took long: they may be old, and the answer says how long the
// jobs hold from then on. It leaves out jobs that are lost meanwhile, and adds the settings of the queues to used.
func (c *call) holdAnew(ctx context.Context, o *claimOrder, jobs []*sluice.Claim, used map[string]sluice.Settings) ([]*sluice.Claim, error) {
	if len(jobs) == 0 {
		return jobs, nil
	}
	now, err := c.api.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	renewals := make([]sluice.Renewal, len(jobs))
	for i, claim := range jobs {
		settings, err := c.api.board.settingsOf(ctx, claim.Queue)
		if err != nil {
			return nil, err
		}
		used[claim.Queue] = settings
		lease := o.leaseIn(settings)
		renewals[i] = sluice.Renewal{ID: claim.ID, Token: claim.Token, Lease: lease, Queue: claim.Queue}
		claim.LeaseUntil = now.Add(lease)
	}
	lost, err := c.api.store.Renew(ctx, renewals)
	return slices.DeleteFunc(jobs, func(claim *sluice.Claim) bool { return slices.Contains(lost, claim.ID) }), err
}

// handBack releases jobs whose client has left. If that fails, their leases end.
func (c *call) handBack(ctx context.Context, holder string, jobs []*sluice.Claim) {
	var releases []sluice.Settlement
	for _, claim := range jobs {
		releases = append(releases, sluice.Settlement{ID: claim.ID, Token: claim.Token, Event: sluice.EventRelease, Holder: holder, Claim: claim, Reason: "the client left before the answer"})
	}
	_, _ = c.api.store.Settle(ctx, releases)
}
