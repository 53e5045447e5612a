// Package sim runs a store's claims and limits on a virtual clock, and answers within seconds for
// days of load. A report shows how long a queue takes to drain, how long each tenant waits, and
// whether the limits hold.
//
// Begin with [Parse], which reads a [Scenario], and [Run], which simulates it and returns a
// [Report]. The scenarios of [Shipped] are examples.
//
// Read next: docs/guide/simulate.md, then run.go for the loop of events and process.go for the
// workers.
package sim

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-queue/sluice"
)

// Scenario is the input of a simulation. [Parse] reads one.
type Scenario struct {
	// Name and About describe the scenario to people.
	Name  string
	About string
	// Start is the virtual clock's first instant. Default: 2026-01-01, UTC.
	Start time.Time
	// Until ends the run, as a time since the start. Default 0: the run ends when no work is left.
	Until time.Duration
	// Seed is the seed of every random choice: the same scenario and seed give the same report.
	// Default 1.
	Seed uint64

	Queues   []Queue
	Tiers    []Tier
	Tenants  []Tenants
	Arrivals []Arrival
	Workers  []Workers
	Expect   []Expectation
}

// Queue is a queue and its settings.
type Queue struct {
	Name     string
	Settings sluice.Settings
	// Given are the settings that the scenario names, as it writes them.
	Given map[string]string
}

// Limits are the limits of a tenant, or of each tenant of a tier, in each queue. Nil: not set.
type Limits struct {
	Concurrency *int
	Rate        *sluice.Rate
	Burst       *int
	Weight      *int
}

func (l Limits) set() bool {
	return l.Concurrency != nil || l.Rate != nil || l.Burst != nil || l.Weight != nil
}

// Tier is a class of tenants.
type Tier struct {
	Name   string
	Limits Limits
}

// Tenants is one tenant, or several equal ones.
type Tenants struct {
	// Name is the tenant's name. With a Count, it is the group's name: the tenants are NAME-1,
	// NAME-2 and so on.
	Name   string
	Count  int
	Tier   string
	Limits Limits
}

// Names lists the tenants.
func (t Tenants) Names() []string {
	if t.Count == 0 {
		return []string{t.Name}
	}
	names := make([]string, t.Count)
	width := len(fmt.Sprint(t.Count))
	for i := range names {
		names[i] = fmt.Sprintf("%s-%0*d", t.Name, width, i+1)
	}
	return names
}

// Arrival is jobs that come: a number at once, or a stream.
type Arrival struct {
	Queue string
	// Tenant is a tenant or a group. Empty: no tenant. The group's tenants get the jobs in turn, or
	// at random in a poisson stream.
	Tenant   string
	Priority int
	// Jobs come together at the moment At, and fall due at Due.
	Jobs int
	At   time.Duration
	Due  time.Duration
	// Rate makes a stream between the moments From and To. Pattern is steady, or poisson for
	// independent callers.
	Rate    sluice.Rate
	Pattern string
	From    time.Duration
	To      time.Duration
	// Work is the work of each job. Nil: the workers' Work.
	Work *Work

	line int
}

// Workers are processes that claim and run jobs.
type Workers struct {
	// Processes is the number of processes, and Slots the slots of each. Default: 1 process with 10
	// slots.
	Processes int
	Slots     int
	// Queues are served in order. Default: all, in the order of the scenario.
	Queues []string
	// Poll is the time between looks at a queue without signals. Default 1 s.
	Poll time.Duration
	// Work is the work of a job.
	Work Work

	line int
}

// Work is how long an attempt takes, and how often an attempt fails.
type Work struct {
	// Mean is the mean duration. Default 100 ms.
	Mean time.Duration
	// Shape is fixed, exponential or lognormal. Sigma belongs to lognormal, default 0.5.
	Shape string
	Sigma float64
	// Failures is the share of attempts that fail, from 0 to 1.
	Failures float64
}

// The shapes of durations and the patterns of streams.
const (
	fixed       = "fixed"
	exponential = "exponential"
	lognormal   = "lognormal"

	poisson = "poisson"
	steady  = "steady"
)

// Bounds of a scenario, so that a typing error does not fill the memory.
const (
	maxJobs      = 20_000_000
	maxTenants   = 100_000
	maxProcesses = 10_000
	maxBuckets   = 100_000
)

func oneOf(into *string, names ...string) reader {
	return func(n *yaml.Node) error {
		for _, name := range names {
			if n.Kind == yaml.ScalarNode && n.Value == name {
				*into = name
				return nil
			}
		}
		return faultAt(n, "%.60q must be one of %v", n.Value, names)
	}
}
