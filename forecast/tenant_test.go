package forecast_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/tenancy"
)

// dueOf enqueues jobs of a tenant that are due after wait.
func (a *ahead) dueOf(tenant string, wait time.Duration, jobs int) {
	a.Helper()
	many := make([]sluice.NewJob, jobs)
	for i := range many {
		many[i] = sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{DueAt: a.now.Add(wait), Tenant: tenant}}
	}
	if _, err := a.client.EnqueueMany(a.Context(), many); err != nil {
		a.Fatal(err)
	}
}

// limit stores limits of a tenant or a tier.
func (a *ahead) limit(limits tenancy.Limits) {
	a.Helper()
	if _, err := tenancy.Given(a.store).SaveTenantLimits(a.Context(), limits, sluice.Act{By: "test"}); err != nil {
		a.Fatal(err)
	}
}

// tier stores a tier with limits, and puts a tenant into it.
func (a *ahead) tier(limits tenancy.Limits, tenant string) {
	a.Helper()
	act := sluice.Act{By: "test"}
	if _, err := tenancy.AddTier(a.Context(), a.store, limits.Tier, act); err != nil {
		a.Fatal(err)
	}
	a.limit(limits)
	if _, err := tenancy.SetTier(a.Context(), a.store, tenant, limits.Tier, act); err != nil {
		a.Fatal(err)
	}
}

// tenantTimes finds the times of a tenant in a bucket.
func (a *ahead) tenantTimes(w forecast.Bucket, tenant string) forecast.TenantTimes {
	a.Helper()
	for _, t := range w.ByTenant {
		if t.Tenant == tenant && !t.Others {
			return t
		}
	}
	a.Fatalf("no times of tenant %q in %+v", tenant, w)
	return forecast.TenantTimes{}
}

// starts checks when the last job of a tenant starts, as a time after now.
func (a *ahead) starts(w forecast.Bucket, tenant string, want time.Duration) {
	a.Helper()
	got := a.tenantTimes(w, tenant).LastStart.Sub(a.now)
	if (got - want).Abs() > 10*time.Millisecond {
		a.Errorf("the last of tenant %q starts after %s, want %s", tenant, got, want)
	}
}

func minutes(run time.Duration) forecast.Request {
	return forecast.Request{Bucket: time.Minute, Tenants: true, WhatIf: forecast.WhatIf{RunTime: run}}
}

func TestForecastOfATenantWithACapacityBesideOthers(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(1), 1 })
	a.limit(tenancy.Limits{Tenant: "one", Concurrency: new(1)})
	a.dueOf("one", 10*time.Minute, 1000)
	a.dueOf("many", 10*time.Minute, 100)
	a.dueOf("many", 20*time.Minute, 10)
	q := a.forecast(minutes(time.Minute))
	wave := a.at(q, 10*time.Minute)
	// One job of the tenant `one` starts each minute, for 999 minutes. The others get the rest of 1/s.
	a.starts(wave, "one", 10*time.Minute+999*time.Minute)
	a.times("the wave", wave, 1009*time.Minute, 1010*time.Minute, 999*time.Minute)
	if others := a.tenantTimes(wave, "many").LastStart.Sub(a.now); others < 11*time.Minute || others > 12*time.Minute {
		a.Errorf("the last of the others starts after %s, want about 10m + 100s", others)
	}
	later := a.at(q, 20*time.Minute)
	a.counts("the later wave", later, 10, 11, 988)
	if late := a.tenantTimes(later, "many").Late; late > 11*time.Second {
		a.Errorf("those that come later wait for %s behind the one that is full", late)
	}
	if want := `1/s; tenant "one": concurrency 1, each job 1m`; q.Held() != want {
		a.Errorf("held by %s, want %s", q.Held(), want)
	}
	if len(q.HeldTenants) != 1 || q.HeldTenants[0].PerSecond != 1.0/60 || len(q.Notes) != 1 {
		a.Errorf("held %+v, notes %q", q.HeldTenants, q.Notes)
	}
	// A request without tenants gets the same times, but no names of tenants.
	request := minutes(time.Minute)
	request.Tenants = false
	plain := a.at(a.forecast(request), 10*time.Minute)
	if plain.Tenants != nil || plain.ByTenant != nil || !plain.LastStart.Equal(wave.LastStart) {
		a.Errorf("without tenants: %+v", plain)
	}
}

func TestForecastByTheLimitsOfTenants(t *testing.T) {
	t.Parallel()
	second := time.Second
	for name, c := range map[string]struct {
		queue  func(*sluice.Settings)
		limits func(*ahead)
		what   forecast.WhatIf
		acme   time.Duration // from the due time to the start of the last of acme's 121 jobs
		other  time.Duration // the same for the last of the other tenant's 11 jobs
		says   string
	}{
		"no limits, in turns": {
			queue: func(s *sluice.Settings) { s.Fair = true },
			says:  "nothing limits it: each job starts when it is due",
		},
		"shares of the rate by weight": {
			queue:  func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(1), 1 },
			limits: func(a *ahead) { a.limit(tenancy.Limits{Tenant: "other", Weight: new(3)}) },
			acme:   131 * second, other: 13667 * time.Millisecond,
			says: "1/s",
		},
		"the tier's concurrency": {
			limits: func(a *ahead) { a.tier(tenancy.Limits{Tier: "PRO", Concurrency: new(5)}, "acme") },
			acme:   232 * second, // 5 at once, 10 s each
			says:   `tenant "acme": concurrency 5, each job 10s`,
		},
		"the tier's, but its own in this queue": {
			limits: func(a *ahead) {
				a.tier(tenancy.Limits{Tier: "PRO", Concurrency: new(5)}, "acme")
				a.limit(tenancy.Limits{Queue: "q", Tenant: "acme", Concurrency: new(10)})
				a.limit(tenancy.Limits{Queue: "elsewhere", Tenant: "acme", Concurrency: new(1)})
			},
			acme: 111 * second,
			says: `tenant "acme": concurrency 10, each job 10s`,
		},
		"a tenant's rate": {
			limits: func(a *ahead) { a.limit(tenancy.Limits{Tenant: "acme", Rate: new(sluice.RatePerSecond(2))}) },
			acme:   60 * time.Second, // 1 at once, then 2 a second
			says:   `tenant "acme": rate 2/s`,
		},
		"a rate with a burst, and a concurrency": {
			limits: func(a *ahead) {
				a.limit(tenancy.Limits{Tenant: "acme", Rate: new(sluice.RatePerSecond(2)), Burst: new(21), Concurrency: new(11)})
			},
			acme: 100 * second,
			says: `tenant "acme": rate 2/s and concurrency 11, each job 10s`,
		},
		"the queue's for each tenant": {
			queue: func(s *sluice.Settings) { s.TenantConcurrency = 1 },
			acme:  1200 * second, other: 100 * second,
			says: "each of 2 tenants: concurrency 1, each job 10s",
		},
		"the queue's, what if jobs were quicker": {
			queue: func(s *sluice.Settings) { s.TenantConcurrency = 1 },
			what:  forecast.WhatIf{RunTime: second},
			acme:  120 * second, other: 10 * second,
			says: "each of 2 tenants: concurrency 1, each job 1s",
		},
		"the queue's, what if it had a rate": {
			queue: func(s *sluice.Settings) { s.TenantConcurrency = 10 },
			what:  forecast.WhatIf{Rate: sluice.RatePerSecond(1)},
			acme:  131 * second, other: 21 * second,
			says: "1/s; each of 2 tenants: concurrency 10, each job 10s",
		},
		"what if it had a concurrency": {
			queue: func(s *sluice.Settings) { s.TenantConcurrency = 5 },
			what:  forecast.WhatIf{Concurrency: 200},
			acme:  232 * second, other: 12 * second,
			says: "concurrency 200, each job 10s; each of 2 tenants: concurrency 5, each job 10s",
		},
		"what if in batches": {
			queue: func(s *sluice.Settings) { s.TenantRate, s.TenantBurst = sluice.RatePerSecond(1), 1 },
			what:  forecast.WhatIf{Batch: 50, Every: 10 * second},
			acme:  120 * second, other: 10 * second,
			says: "50 every 10s; each of 2 tenants: rate 1/s",
		},
		"paused for a while": {
			limits: func(a *ahead) {
				a.limit(tenancy.Limits{Tenant: "acme", Rate: new(sluice.RatePerSecond(1)), Burst: new(1), Paused: true, PausedUntil: a.now.Add(time.Hour)})
			},
			acme: 50*time.Minute + 120*second,
			says: `tenant "acme": paused until 2026-12-01T17:00:00Z and rate 1/s`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAhead(t, func(s *sluice.Settings) {
				if c.queue != nil {
					c.queue(s)
				}
			})
			if c.limits != nil {
				c.limits(a)
			}
			a.dueOf("acme", 10*time.Minute, 121)
			a.dueOf("other", 10*time.Minute, 11)
			request := minutes(10 * time.Second)
			request.WhatIf = c.what
			if c.what.RunTime == 0 {
				request.WhatIf.RunTime = 10 * time.Second
			}
			q := a.forecast(request)
			wave := a.at(q, 10*time.Minute)
			a.starts(wave, "acme", 10*time.Minute+c.acme)
			a.starts(wave, "other", 10*time.Minute+c.other)
			if q.Held() != c.says {
				a.Errorf("held by %s, want %s", q.Held(), c.says)
			}
		})
	}
}

func TestForecastOfAPausedTenant(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(*sluice.Settings) {})
	a.limit(tenancy.Limits{Queue: "q", Tenant: "shut", Paused: true})
	a.dueOf("shut", 10*time.Minute, 30)
	a.dueOf("open", 10*time.Minute, 5)
	a.dueOf("shut", 20*time.Minute, 1)
	q := a.forecast(minutes(time.Minute))
	wave := a.at(q, 10*time.Minute)
	a.counts("both", wave, 35, 5, 30)
	a.times("the open ones", wave, 10*time.Minute, 11*time.Minute, 0)
	if wave.NeverJobs != 30 || wave.Never() || a.tenantTimes(wave, "shut").NeverJobs != 30 {
		a.Errorf("the wave is %+v, want 30 jobs of the shut tenant that never start", wave)
	}
	if alone := a.at(q, 20*time.Minute); !alone.Never() || alone.NeverJobs != 1 || alone.Backlog != 31 {
		a.Errorf("the paused one alone: %+v", alone)
	}
	if notes := strings.Join(q.Notes, "\n"); !strings.Contains(notes, `tenant "shut" is paused, so that its 31 jobs never start before somebody resumes it`) {
		a.Errorf("notes: %s", notes)
	}
	text, err := json.Marshal(q)
	if err != nil {
		a.Fatal(err)
	}
	for _, want := range []string{`"never_start":30`, `"held_tenants":[{"tenant":"shut","summary":"paused"}]`, `"by_tenant":[{"tenant":"shut","jobs":30,"never_start":30},{"tenant":"open","jobs":5,"last_start"`} {
		if !strings.Contains(string(text), want) {
			a.Errorf("%s lacks %s", text, want)
		}
	}
}

func TestForecastCountsWhatATenantHasInFlight(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.TenantConcurrency = 2 })
	a.dueOf("acme", 0, 12)
	if _, err := a.store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 10, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()}); err != nil {
		t.Fatal(err)
	}
	q := a.forecast(minutes(10 * time.Second))
	// 2 jobs run and 10 wait: the first waiting job can start when the first running job ends.
	if q.InFlight.Jobs != 2 || q.Due.Jobs != 10 {
		t.Fatalf("%d in flight, %d due", q.InFlight.Jobs, q.Due.Jobs)
	}
	a.starts(q.Waves[0], "acme", 50*time.Second)
}

func TestForecastSaysWhatItSupposesOfTenants(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.TenantConcurrency = 1 })
	for n := range forecast.MaxTenants {
		a.dueOf(fmt.Sprint("large ", n), 30*time.Minute, 6)
	}
	for n := range 10 {
		a.dueOf(fmt.Sprint("small ", n), 10*time.Minute, 3)
	}
	a.limit(tenancy.Limits{Tenant: "large 1", Concurrency: new(6), Until: a.now.Add(time.Hour)})
	request := minutes(10 * time.Second)
	request.Ahead = 20 * time.Minute
	q := a.forecast(request)
	// The others have 30 jobs, and none of them has more than six: five tenants at the least, of one each.
	a.times("the others", a.at(q, 10*time.Minute), 11*time.Minute-10*time.Second, 11*time.Minute, 50*time.Second)
	notes := strings.Join(q.Notes, "\n")
	for _, want := range []string{
		"the tenants beyond the 20 largest are taken together, as 5 or more by the queue's tenant_concurrency and tenant_rate; what is granted to them or to their tiers is left out",
		`limits that end are taken to stay: of tenant "large 1" at 2026-12-01T17:00:00Z`,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("%s\nlacks %s", notes, want)
		}
	}
	if q.Held() != "each tenant beyond the largest: concurrency 1, each job 10s" {
		t.Errorf("held by %s", q.Held())
	}
	request.WhatIf.RunTime = 0
	q = a.forecast(request)
	if notes = strings.Join(q.Notes, "\n"); !strings.Contains(notes, "the concurrencies of tenants are left out, because how long a job runs is not known") {
		t.Errorf("notes: %s", notes)
	}
	q = a.forecast(minutes(10 * time.Second))
	if want := `each of 19 tenants and of the others: concurrency 1, each job 10s; tenant "large 1": concurrency 6, each job 10s`; q.Held() != want {
		t.Errorf("held by %s, want %s", q.Held(), want)
	}
}

// reads counts the store calls of a forecast.
type reads struct {
	*memory.Store
	calls []string
}

func (r *reads) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	r.calls = append(r.calls, "queues")
	return r.Store.Queues(ctx, filter)
}

func (r *reads) Holders(ctx context.Context) ([]presence.Holder, error) {
	r.calls = append(r.calls, "holders")
	return presence.Given(r.Store).Holders(ctx)
}

func (r *reads) Waves(ctx context.Context, filter forecast.Filter) (forecast.Counts, error) {
	r.calls = append(r.calls, "waves")
	return r.Store.Waves(ctx, filter)
}

func (r *reads) EffectiveLimits(ctx context.Context, queue sluice.Queue, tenants []string, at time.Time) (map[string]sluice.EffectiveLimits, error) {
	r.calls = append(r.calls, fmt.Sprint("terms of ", len(tenants)))
	return r.Store.EffectiveLimits(ctx, queue, tenants, at)
}

func (r *reads) Tenant(ctx context.Context, name string) (tenancy.Tenant, error) {
	r.calls = append(r.calls, "tenant")
	return r.Store.Tenant(ctx, name)
}

func (r *reads) TenantLimits(ctx context.Context, tier, tenant string) ([]tenancy.Limits, error) {
	r.calls = append(r.calls, "limits")
	return r.Store.TenantLimits(ctx, tier, tenant)
}

func TestForecastReadsTheLimitsOfTenantsAtOnce(t *testing.T) {
	t.Parallel()
	a := newAhead(t, func(s *sluice.Settings) { s.TenantConcurrency = 1 })
	for n := range 100 {
		a.dueOf(fmt.Sprint(n), 10*time.Minute, 1)
	}
	if _, err := forecast.Recount(t.Context(), a.store); err != nil {
		t.Fatal(err)
	}
	counted := &reads{Store: a.store}
	f, err := forecast.Of(t.Context(), counted, minutes(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"queues", "holders", "waves", "terms of 20"}; !slices.Equal(counted.calls, want) {
		t.Errorf("reads %q, want %q", counted.calls, want)
	}
	if w := f.Queues[0].Waves[10]; w.Jobs != 100 || w.Starts != 100 {
		t.Errorf("the wave is %+v, want 100 jobs and 100 starts", w)
	}
}
