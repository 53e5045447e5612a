package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/internal/demo"
)

// setTiers puts the payments' tenants into tiers, with --tiers.
func (d *demoRun) setTiers(ctx context.Context) error {
	if !d.flags.tiers {
		return nil
	}
	return demo.SetTiers(ctx, d.store, d.client, d.summary.Queue, slices.Collect(maps.Keys(d.tenants)), d.act("demo"))
}

// checkPace proves that the rate was kept, if there is one.
func (d *demoRun) checkPace(ctx context.Context, queue sluice.Queue) error {
	if queue.Settings.Rate.IsZero() {
		return nil
	}
	pace, err := demo.CheckPace(ctx, d.client, queue)
	if err != nil {
		return err
	}
	d.summary.Pace = &pace
	return nil
}

// checkTiers proves that the concurrency limits were kept, if there are tiers.
func (d *demoRun) checkTiers(ctx context.Context) (err error) {
	if d.flags.tiers {
		d.summary.Tiers, err = demo.CheckTiers(ctx, d.store, d.client, d.summary.Queue)
	}
	return err
}

// failure names the failed checks; empty: none.
func (d *demoRun) failure() string {
	var failed []string
	if !d.balances {
		failed = append(failed, "the books do not balance")
	}
	if p := d.summary.Pace; p != nil && p.Over > 0 {
		failed = append(failed, fmt.Sprintf("%s payments were claimed before the rate allowed it", draw.Count(p.Over)))
	}
	if claims, posted := d.auditedClaims(), d.summary.Check.Posted; claims >= 0 && claims < posted {
		failed = append(failed, fmt.Sprintf("the audit tells of %s claims, and %s payments were posted", draw.Count(claims), draw.Count(posted)))
	}
	if n := d.overLimit(); n > 0 {
		failed = append(failed, fmt.Sprintf("%s claims gave a tenant more than its concurrency", draw.Count(n)))
	}
	return strings.Join(failed, "; ")
}

// overLimit counts claims beyond a tenant's concurrency limit.
func (d *demoRun) overLimit() int {
	over := 0
	for _, t := range d.summary.Tiers {
		over += t.Over
	}
	return over
}

// auditedClaims counts the claims in the audit; negative: not read.
func (d *demoRun) auditedClaims() int {
	switch s := d.summary; {
	case s.Pace != nil:
		return s.Pace.Claims
	case s.Tiers != nil:
		claims := 0
		for _, t := range s.Tiers {
			claims += t.Claims
		}
		return claims
	}
	return -1
}
