package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/tenancy"
)

// Grants are the limits of the demo's queue for each tier: the preset concurrency limits, and
// weights that make the shares differ.
func Grants(queue string) []tenancy.Limits {
	grants := tenancy.PresetTiers()
	for i, weight := range []int{1, 2, 5} {
		grants[i].Queue, grants[i].Weight = queue, &weight
	}
	return grants
}

// tierOf puts the tenants of a wave into tiers by their place in the order of names. Of 10 tenants,
// 1 is ENTERPRISE, 3 are PRO and 6 are FREE.
func tierOf(place int) string {
	switch place % 10 {
	case 0:
		return "ENTERPRISE"
	case 1, 2, 3:
		return "PRO"
	}
	return "FREE"
}

// SetTiers creates the tiers, stores their limits in the demo's queue alone, and puts tenants into
// them. A tenant that already has a tier keeps it.
func SetTiers(ctx context.Context, store sluice.Store, client *sluice.Client, queue string, tenants []string, act sluice.Act) error {
	act.ID = sluice.ID{} // each change has its own id
	for _, grant := range Grants(queue) {
		if _, err := tenancy.AddTier(ctx, store, grant.Tier, act); err != nil && !errors.Is(err, sluice.ErrConflict) {
			return err
		}
		_, err := tenancy.ChangeLimits(ctx, store, tenancy.Limits{Queue: queue, Tier: grant.Tier}, act, func(l *tenancy.Limits) error {
			l.Concurrency, l.Weight = grant.Concurrency, grant.Weight
			return nil
		})
		if err != nil {
			return err
		}
	}
	tenants = slices.Clone(tenants)
	slices.Sort(tenants)
	for place, tenant := range tenants {
		stored, err := tenancy.Given(store).Tenant(ctx, tenant)
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return err
		}
		if stored.Tier != "" {
			continue
		}
		if _, err := tenancy.SetTier(ctx, store, tenant, tierOf(place), act); err != nil {
			return err
		}
	}
	return nil
}

// Tier is the outcome of the jobs of a tier's tenants, according to the audit.
type Tier struct {
	// Tier is its name. Empty: jobs without a tenant, and of tenants without a tier.
	Tier    string `json:"tier"`
	Tenants int    `json:"tenants"`
	Jobs    int    `json:"jobs"`
	// Claims is the number of claims of its jobs.
	Claims int `json:"claims"`
	// Share is the tier's share of the first half of all claims, while every tier has work.
	Share float64 `json:"share"`
	// Highest is the most jobs that one of its tenants had in flight at once. Concurrency is the
	// concurrency limit of each tenant; 0: no limit. If tenants have their own limits, Concurrency is
	// the largest.
	Highest     int `json:"highest_in_flight"`
	Concurrency int `json:"concurrency"`
	// Over counts claims that exceeded a tenant's concurrency limit.
	Over int `json:"over_capacity"`
	// MedianWait is the time in seconds from due to the claim of the last attempt.
	MedianWait float64 `json:"median_wait_seconds"`

	early int // claims in the first half
	waits []time.Duration
}

// standing is a tenant's state while the audit is replayed.
type standing struct {
	tier              *Tier
	concurrency, held int
}

// CheckTiers replays every move of a queue that audits all moves, and counts each tenant's jobs in
// flight after each of them.
func CheckTiers(ctx context.Context, store sluice.Store, client *sluice.Client, queue string) ([]Tier, error) {
	book := tierBook{store: store, tiers: make(map[string]*Tier), tenants: make(map[string]*standing), jobs: make(map[sluice.ID]*standing)}
	if err := book.readJobs(ctx, client, queue); err != nil {
		return nil, err
	}
	moves, err := movesOf(ctx, client, queue)
	if err != nil {
		return nil, err
	}
	book.replay(moves)
	return book.sum(), nil
}

// tierBook collects the facts about the jobs of a queue.
type tierBook struct {
	store   sluice.Store
	tiers   map[string]*Tier
	tenants map[string]*standing
	jobs    map[sluice.ID]*standing
	half    int // of all claims
}

// readJobs finds the tenant of each job, and how long the job waited.
func (b *tierBook) readJobs(ctx context.Context, client *sluice.Client, queue string) error {
	filter := sluice.JobFilter{Queue: queue, Limit: 10_000}
	for {
		page, err := client.Jobs(ctx, filter)
		if err != nil {
			return fmt.Errorf("read the jobs: %w", err)
		}
		for _, job := range page.Jobs {
			s, err := b.standingOf(ctx, job)
			if err != nil {
				return fmt.Errorf("read the limits of tenant %q: %w", job.Tenant, err)
			}
			b.jobs[job.ID] = s
			s.tier.Jobs++
			if !job.ClaimedAt.IsZero() {
				s.tier.waits = append(s.tier.waits, job.ClaimedAt.Sub(job.DueAt))
			}
		}
		if page.Next.IsZero() {
			return nil
		}
		filter.Before = page.Next
	}
}

// standingOf finds the tier and the concurrency limit of a job's tenant.
func (b *tierBook) standingOf(ctx context.Context, job sluice.Job) (*standing, error) {
	if s := b.tenants[job.Tenant]; s != nil {
		return s, nil
	}
	var tenant tenancy.Tenant
	if job.Tenant != "" {
		var err error
		if tenant, err = tenancy.Given(b.store).Tenant(ctx, job.Tenant); err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return nil, err
		}
	}
	position, err := explain.Given(b.store).Position(ctx, job.ID)
	if err != nil {
		return nil, err
	}
	tier := b.tiers[tenant.Tier]
	if tier == nil {
		tier = &Tier{Tier: tenant.Tier}
		b.tiers[tenant.Tier] = tier
	}
	tier.Tenants++
	tier.Concurrency = max(tier.Concurrency, position.EffectiveLimits.Concurrency)
	s := &standing{tier: tier, concurrency: position.EffectiveLimits.Concurrency}
	b.tenants[job.Tenant] = s
	return s, nil
}

// replay counts each tenant's jobs in flight through all moves.
func (b *tierBook) replay(moves []sluice.AuditEntry) {
	claims := 0
	for _, move := range moves {
		if move.Event == sluice.EventClaim {
			claims++
		}
	}
	b.half = claims / 2
	claims = 0
	for _, move := range moves {
		s := b.jobs[move.JobID]
		if s == nil {
			continue
		}
		if inFlight(move.From) && !inFlight(move.To) {
			s.held--
		}
		if move.Event != sluice.EventClaim {
			continue
		}
		s.held++
		s.tier.Claims++
		s.tier.Highest = max(s.tier.Highest, s.held)
		if s.concurrency > 0 && s.held > s.concurrency {
			s.tier.Over++
		}
		if claims++; claims <= b.half {
			s.tier.early++
		}
	}
}

func inFlight(s sluice.State) bool { return s == sluice.StateClaimed || s == sluice.StateDispatched }

// sum returns the tiers, the lowest concurrency limit first, and tiers without a limit last.
func (b *tierBook) sum() []Tier {
	out := []Tier{} // so that JSON has an empty list instead of null
	for _, t := range b.tiers {
		t.Share = float64(t.early) / float64(max(b.half, 1))
		if n := len(t.waits); n > 0 {
			slices.Sort(t.waits)
			t.MedianWait = t.waits[n/2].Seconds()
		}
		out = append(out, *t)
	}
	slices.SortFunc(out, func(x, y Tier) int {
		return cmp.Or(cmp.Compare(uint(x.Concurrency-1), uint(y.Concurrency-1)), cmp.Compare(x.Tier, y.Tier))
	})
	return out
}
