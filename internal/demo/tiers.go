package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// Grants are what the demo's queue grants to the tenants of each tier: the preset capacities, and weights that
// let the shares differ.
func Grants(queue string) []sluice.TenantLimits {
	grants := sluice.PresetTiers()
	for i, weight := range []int{1, 2, 5} {
		grants[i].Queue, grants[i].Weight = queue, &weight
	}
	return grants
}

// tierOf puts the tenants of a wave into tiers by their places in the order of names: of ten, one is ENTERPRISE,
// three are PRO and six are FREE.
func tierOf(place int) string {
	switch place % 10 {
	case 0:
		return "ENTERPRISE"
	case 1, 2, 3:
		return "PRO"
	}
	return "FREE"
}

// SetTiers makes the tiers, grants what they have in the demo's queue alone, and puts tenants into them. A tenant
// that is in a tier already stays there.
func SetTiers(ctx context.Context, store sluice.Store, client *sluice.Client, queue string, tenants []string, act sluice.Act) error {
	act.ID = sluice.ID{} // each change has one of its own
	for _, grant := range Grants(queue) {
		if _, err := client.AddTier(ctx, grant.Tier, act); err != nil && !errors.Is(err, sluice.ErrConflict) {
			return err
		}
		_, err := client.ChangeTenantLimits(ctx, sluice.TenantLimits{Queue: queue, Tier: grant.Tier}, act, func(l *sluice.TenantLimits) error {
			l.Capacity, l.Weight = grant.Capacity, grant.Weight
			return nil
		})
		if err != nil {
			return err
		}
	}
	tenants = slices.Clone(tenants)
	slices.Sort(tenants)
	for place, tenant := range tenants {
		stored, err := store.Tenant(ctx, tenant)
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return err
		}
		if stored.Tier != "" {
			continue
		}
		if _, err := client.SetTier(ctx, tenant, tierOf(place), act); err != nil {
			return err
		}
	}
	return nil
}

// Tier is what became of the jobs of a tier's tenants, as the audit tells it.
type Tier struct {
	// Tier is its name; empty: of the jobs without a tenant, and of tenants without a tier.
	Tier    string `json:"tier"`
	Tenants int    `json:"tenants"`
	Jobs    int    `json:"jobs"`
	// Claims were made of its jobs.
	Claims int `json:"claims"`
	// Share is the part of the tier in the first half of all claims, while every tier has work.
	Share float64 `json:"share"`
	// Highest is the most that any of its tenants had in flight at one moment, and Capacity what each was
	// allowed; 0: no limit. Of tenants with limits of their own, Capacity is the largest.
	Highest  int `json:"highest_in_flight"`
	Capacity int `json:"capacity"`
	// Over counts claims that gave a tenant more than its capacity.
	Over int `json:"over_capacity"`
	// MedianWait is from when a job was due to when it was claimed, at the last of its attempts, in seconds.
	MedianWait float64 `json:"median_wait_seconds"`

	early int // claims in the first half
	waits []time.Duration
}

// standing is a tenant while the audit is replayed.
type standing struct {
	tier           *Tier
	capacity, held int
}

// CheckTiers replays every move of a queue whose moves are all audited, and looks what each tenant had in flight
// after each of them.
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

// tierBook gathers what is known of the jobs of a queue.
type tierBook struct {
	store   sluice.Store
	tiers   map[string]*Tier
	tenants map[string]*standing
	jobs    map[sluice.ID]*standing
	half    int // of all claims
}

// readJobs finds whose each job is, and how long it waited.
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

// standingOf finds the tier and the capacity of a job's tenant.
func (b *tierBook) standingOf(ctx context.Context, job sluice.Job) (*standing, error) {
	if s := b.tenants[job.Tenant]; s != nil {
		return s, nil
	}
	var tenant sluice.Tenant
	if job.Tenant != "" {
		var err error
		if tenant, err = b.store.Tenant(ctx, job.Tenant); err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return nil, err
		}
	}
	outlook, err := b.store.Outlook(ctx, job.ID)
	if err != nil {
		return nil, err
	}
	tier := b.tiers[tenant.Tier]
	if tier == nil {
		tier = &Tier{Tier: tenant.Tier}
		b.tiers[tenant.Tier] = tier
	}
	tier.Tenants++
	tier.Capacity = max(tier.Capacity, outlook.Terms.Capacity)
	s := &standing{tier: tier, capacity: outlook.Terms.Capacity}
	b.tenants[job.Tenant] = s
	return s, nil
}

// replay follows what each tenant has in flight through all moves.
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
		if s.capacity > 0 && s.held > s.capacity {
			s.tier.Over++
		}
		if claims++; claims <= b.half {
			s.tier.early++
		}
	}
}

func inFlight(s sluice.State) bool { return s == sluice.StateClaimed || s == sluice.StateDispatched }

// sum gives the tiers, the one with the least capacity first, and those without a limit last.
func (b *tierBook) sum() []Tier {
	out := []Tier{} // JSON has an empty list, not null
	for _, t := range b.tiers {
		t.Share = float64(t.early) / float64(max(b.half, 1))
		if n := len(t.waits); n > 0 {
			slices.Sort(t.waits)
			t.MedianWait = t.waits[n/2].Seconds()
		}
		out = append(out, *t)
	}
	slices.SortFunc(out, func(x, y Tier) int {
		return cmp.Or(cmp.Compare(uint(x.Capacity-1), uint(y.Capacity-1)), cmp.Compare(x.Tier, y.Tier))
	})
	return out
}
