package faulttest

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/tenancy"
)

// crowdOf lists the roles of the processes: the number is how many workers claim in each process.
var crowdOf = []string{"crowd of 3", "crowd of 3", "crowd of 2"}

// grants are the highest limits that tenants ever get. In between, the limits are lower.
var grants = []tenancy.Limits{
	{Tenant: "one", Concurrency: new(1)},
	{Tenant: "two", Concurrency: new(2)},
	{Tenant: "five", Concurrency: new(5)},
	{Tenant: "slow", Concurrency: new(5), Rate: new(sluice.RatePerSecond(20)), Burst: new(4)},
}

// tenants is a bank with payments of tenants that have limits.
type tenants struct {
	*bank
	random  *rand.Rand
	workers []*exec.Cmd
}

// TestTenantsKeepTheirLimitsWhileProcessesDie claims with eight workers in three processes. The test kills and freezes
// the processes while limits change. Then it checks the audit for a broken limit.
func TestTenantsKeepTheirLimitsWhileProcessesDie(t *testing.T) {
	t.Parallel()
	steps := 80
	if testing.Short() {
		steps = 20
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &tenants{bank: newBank(t, pgtest.NewDatabase(t)), random: rand.New(rand.NewPCG(seed, 0))}
	_, err := s.client.ChangeSettings(t.Context(), s.queue, sluice.Act{By: "test"}, func(set *sluice.Settings) error {
		set.Audit = sluice.AuditFull
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, grant := range grants {
		s.grant(grant)
	}
	s.tend()
	for _, role := range crowdOf {
		s.workers = append(s.workers, s.spawn(role))
	}
	for range steps {
		s.step()
	}
	s.settled()
	check := s.balance()
	moves := s.moves()
	s.neverOver(moves)
	s.eachOnce(moves)
	s.rateKept(moves)
	t.Logf("%d payments, %d recovered", check.Payments, check.Recoveries)
}

// step enqueues payments of each tenant, and perhaps makes trouble.
func (s *tenants) step() {
	for _, grant := range grants {
		most := 10
		if grant.Rate != nil {
			most = 4
		}
		if err := s.payFor(grant.Tenant, s.random.IntN(most)); err != nil {
			s.Fatal(err)
		}
	}
	time.Sleep(time.Duration(s.random.IntN(100)) * time.Millisecond)
	i := s.random.IntN(len(s.workers))
	switch s.random.IntN(20) {
	case 0:
		signalTo(s.T, s.workers[i], syscall.SIGKILL)
		_ = s.workers[i].Wait() // it was killed
		s.workers[i] = s.spawn(crowdOf[i])
	case 1:
		signalTo(s.T, s.workers[i], syscall.SIGSTOP)
		time.Sleep(1200 * time.Millisecond)
		signalTo(s.T, s.workers[i], syscall.SIGCONT)
	case 2, 3, 4, 5:
		grant := grants[s.random.IntN(len(grants))]
		grant.Concurrency, grant.Weight = new(1+s.random.IntN(*grant.Concurrency)), new(1+s.random.IntN(5))
		s.grant(grant)
	}
}

func (s *tenants) payFor(tenant string, n int) error {
	for range n {
		s.seq++
		payment := demo.Payment{ID: fmt.Sprintf("pay-%06d", s.seq), Payer: "a", Payee: "b", Cents: int64(s.seq), Bank: banks[s.random.IntN(4)]}
		if _, err := sluice.QueueOf[demo.Payment](s.queue).Enqueue(s.Context(), s.client, payment, sluice.EnqueueOptions{Tenant: tenant, Key: payment.ID}); err != nil {
			return err
		}
		s.acked++
	}
	return nil
}

func (s *tenants) grant(grant tenancy.Limits) {
	s.Helper()
	_, err := tenancy.ChangeLimits(s.Context(), s.store, tenancy.Limits{Tenant: grant.Tenant, Queue: s.queue}, sluice.Act{By: "test"}, func(l *tenancy.Limits) error {
		l.Concurrency, l.Rate, l.Burst, l.Weight = grant.Concurrency, grant.Rate, grant.Burst, grant.Weight
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// move is an entry of the audit and the tenant of its job.
type move struct {
	sluice.AuditEntry
	tenant string
}

// moves lists the audit of the jobs, the oldest entry first.
func (s *tenants) moves() []move {
	s.Helper()
	whose := make(map[sluice.ID]string)
	for filter := (sluice.JobFilter{Queue: s.queue, Limit: 10_000}); ; {
		page, err := s.client.Jobs(s.Context(), filter)
		if err != nil {
			s.Fatal(err)
		}
		for _, job := range page.Jobs {
			whose[job.ID] = job.Tenant
		}
		if filter.Before = page.Next; page.Next.IsZero() {
			break
		}
	}
	var out []move
	for filter := (sluice.AuditFilter{Object: audit.ObjectJob, Name: s.queue, Limit: 10_000}); ; {
		page, err := s.client.Audit(s.Context(), filter)
		if err != nil {
			s.Fatal(err)
		}
		for _, entry := range page {
			out = append(out, move{entry, whose[entry.JobID]})
		}
		if len(page) < filter.Limit {
			slices.Reverse(out)
			return out
		}
		filter.Before = page[len(page)-1].Seq
	}
}

// neverOver checks that no tenant ever had more jobs in flight than its limit.
func (s *tenants) neverOver(moves []move) {
	s.Helper()
	held, highest := make(map[string]int), make(map[string]int)
	for _, m := range moves {
		switch {
		case m.Event == sluice.EventClaim:
			held[m.tenant]++
		case m.From == sluice.StateClaimed && m.To != sluice.StateClaimed:
			held[m.tenant]--
		}
		highest[m.tenant] = max(highest[m.tenant], held[m.tenant])
	}
	for _, grant := range grants {
		if highest[grant.Tenant] > *grant.Concurrency {
			s.Errorf("tenant %s had %d jobs in flight, and may have %d", grant.Tenant, highest[grant.Tenant], *grant.Concurrency)
		}
		if held[grant.Tenant] != 0 {
			s.Errorf("tenant %s has %d jobs in flight at the end", grant.Tenant, held[grant.Tenant])
		}
	}
	s.Logf("at most in flight: %v", highest)
}

// eachOnce checks that every job was completed once.
func (s *tenants) eachOnce(moves []move) {
	s.Helper()
	completed := make(map[sluice.ID]int)
	for _, m := range moves {
		if m.Event == sluice.EventComplete {
			if completed[m.JobID]++; completed[m.JobID] > 1 {
				s.Errorf("job %s was completed %d times", m.JobID, completed[m.JobID])
			}
		}
	}
	if len(completed) != s.acked {
		s.Errorf("%d of %d jobs were completed", len(completed), s.acked)
	}
}

// rateKept checks that jobs of tenants with a rate were claimed only when the tenants had tokens.
func (s *tenants) rateKept(moves []move) {
	s.Helper()
	for _, grant := range grants {
		if grant.Rate == nil {
			continue
		}
		var tokens float64
		var at time.Time
		for _, m := range moves {
			if m.tenant != grant.Tenant || m.Event != sluice.EventClaim {
				continue
			}
			if at.IsZero() {
				tokens, at = float64(*grant.Burst), m.At
			}
			tokens = min(float64(*grant.Burst), tokens+grant.Rate.PerSecond()*max(0, m.At.Sub(at).Seconds()))
			if at = m.At; tokens < 1-1e-3 { // the stores' clocks count in microseconds
				s.Fatalf("tenant %s was claimed from at %s with %.3f tokens", grant.Tenant, m.At, tokens)
			}
			tokens--
		}
	}
}
