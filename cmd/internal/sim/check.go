package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// settle converts every moment to the time since the start, and fills in defaults.
func (p *parsing) settle() error {
	if p.until != nil {
		var err error
		if p.Until, err = p.until.since(p.Start); err != nil {
			return err
		}
	}
	for i := range p.Arrivals {
		a := &p.Arrivals[i]
		if err := p.arrival[i].settle(a, p.Scenario); err != nil {
			return err
		}
		if a.Queue == "" && len(p.Queues) == 1 {
			a.Queue = p.Queues[0].Name
		}
	}
	for i := range p.Workers {
		if len(p.Workers[i].Queues) > 0 {
			continue
		}
		for _, q := range p.Queues {
			p.Workers[i].Queues = append(p.Workers[i].Queues, q.Name)
		}
	}
	return nil
}

// settle converts an arrival's moments to the time since the start.
func (m arrivalMoments) settle(a *Arrival, s Scenario) error {
	if a.Jobs > 0 == (!a.Rate.IsZero()) {
		return &Fault{a.line, "an arrival has either jobs, which come at once, or a rate, which makes a stream"}
	}
	if a.Jobs > 0 && (m.from != nil || m.to != nil) || !a.Rate.IsZero() && (m.at != nil || m.due != nil) {
		return &Fault{a.line, "at and due are of jobs that come at once, from and to are of a stream"}
	}
	for _, f := range []struct {
		moment *moment
		into   *time.Duration
	}{{m.at, &a.At}, {m.due, &a.Due}, {m.from, &a.From}, {m.to, &a.To}} {
		if f.moment == nil {
			continue
		}
		d, err := f.moment.since(s.Start)
		if err != nil {
			return err
		}
		*f.into = d
	}
	a.Due = max(a.Due, a.At)
	if m.to == nil {
		a.To = s.Until
	}
	if !a.Rate.IsZero() && a.To <= a.From {
		return &Fault{a.line, "a stream needs an end after its beginning: say to, or until for the scenario"}
	}
	return nil
}

// check returns an error if the parts of the scenario contradict each other.
func (s Scenario) check() error {
	if len(s.Queues) == 0 || len(s.Arrivals) == 0 || len(s.Workers) == 0 {
		return &Fault{0, "a scenario needs queues, arrivals and workers"}
	}
	if y := s.Start.UTC().Year(); y < 1970 || y > 9000 {
		return &Fault{0, fmt.Sprintf("start: the year %d must be from 1970 to 9000", y)}
	}
	if err := s.checkTenants(); err != nil {
		return err
	}
	jobs := 0.0
	for _, a := range s.Arrivals {
		if err := s.checkArrival(a); err != nil {
			return err
		}
		jobs += float64(a.Jobs) + a.Rate.PerSecond()*(a.To-a.From).Seconds()
	}
	if jobs > maxJobs {
		return &Fault{0, fmt.Sprintf("about %.0f jobs come in; %d are the most", jobs, maxJobs)}
	}
	for _, w := range s.Workers {
		for _, name := range w.Queues {
			if s.queue(name) == nil {
				return &Fault{w.line, fmt.Sprintf("the queue %q is not among the queues", name)}
			}
		}
	}
	for _, e := range s.Expect {
		if err := s.checkSubject(e); err != nil {
			return err
		}
	}
	return nil
}

func (s Scenario) queue(name string) *Queue {
	i := slices.IndexFunc(s.Queues, func(q Queue) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Queues[i]
}

func (s Scenario) tier(name string) bool {
	return slices.ContainsFunc(s.Tiers, func(t Tier) bool { return t.Name == name })
}

// group returns the tenants with a name: the members of a group, or a single tenant, listed or not.
func (s Scenario) group(name string) []string {
	for _, t := range s.Tenants {
		if t.Name == name {
			return t.Names()
		}
	}
	return []string{name}
}

func (s Scenario) checkTenants() error {
	seen := make(map[string]bool)
	for _, t := range s.Tenants {
		if t.Tier != "" && !s.tier(t.Tier) {
			return &Fault{0, fmt.Sprintf("tenants %q: the tier %q is not among the tiers", t.Name, t.Tier)}
		}
		names := t.Names()
		if t.Count > 0 {
			names = append(names, t.Name)
		}
		for _, name := range names {
			if seen[name] {
				return &Fault{0, fmt.Sprintf("the tenant %q is there twice", name)}
			}
			seen[name] = true
		}
		if len(seen) > 2*maxTenants {
			return &Fault{0, fmt.Sprintf("%d tenants are the most", maxTenants)}
		}
	}
	return nil
}

func (s Scenario) checkArrival(a Arrival) error {
	if s.queue(a.Queue) == nil {
		return &Fault{a.line, fmt.Sprintf("the queue %q is not among the queues", a.Queue)}
	}
	if len(a.Tenant) > sluice.MaxTenantBytes-10 {
		return &Fault{a.line, "the tenant's name is too long"}
	}
	if !slices.ContainsFunc(s.Workers, func(w Workers) bool { return slices.Contains(w.Queues, a.Queue) }) {
		return &Fault{a.line, fmt.Sprintf("no workers serve the queue %q", a.Queue)}
	}
	return nil
}
