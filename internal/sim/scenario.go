// Package sim runs a store's claims and limits on a virtual clock, and tells in seconds what would take
// days: how long a queue takes to drain, how long whom waits, and whether the limits were kept.
package sim

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-queue/sluice"
)

// Scenario is what is simulated. Parse reads one.
type Scenario struct {
	// Name and About tell people what it is.
	Name  string
	About string
	// Start is the virtual clock's first instant. Default: the beginning of 2026, UTC.
	Start time.Time
	// Until ends the run, counted from the start. Default 0: when nothing is left to do.
	Until time.Duration
	// Seed draws every chance; the same scenario and seed give the same report. Default 1.
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

// Limits are what a tenant, or each tenant of a tier, may use of each queue; nil: nothing is said.
type Limits struct {
	Capacity *int
	Rate     *sluice.Rate
	Burst    *int
	Weight   *int
}

func (l Limits) set() bool {
	return l.Capacity != nil || l.Rate != nil || l.Burst != nil || l.Weight != nil
}

// Tier is a class of tenants.
type Tier struct {
	Name   string
	Limits Limits
}

// Tenants are one tenant, or so many alike.
type Tenants struct {
	// Name is the tenant's; with a Count, that of the group: its tenants are NAME-1, NAME-2 and so on.
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

// Arrival is jobs that come in: so many at once, or a stream.
type Arrival struct {
	Queue string
	// Tenant names one or a group; empty: nobody's. The jobs go to the group's tenants in turn, those
	// of a poisson stream by lot.
	Tenant   string
	Priority int
	// Jobs come at once, At, and fall due at Due.
	Jobs int
	At   time.Duration
	Due  time.Duration
	// Rate makes a stream, From one moment To another: steady, or by chance as independent callers
	// come (poisson).
	Rate    sluice.Rate
	Pattern string
	From    time.Duration
	To      time.Duration
	// Work is what the jobs take; nil: what the workers say.
	Work *Work

	line int
}

// Workers are processes that claim and run jobs.
type Workers struct {
	// Processes is how many there are, each with so many Slots. Default 1 with 10.
	Processes int
	Slots     int
	// Queues are served in order. Default: all, in the order of the scenario.
	Queues []string
	// Poll is how often a queue is looked at when nobody says that it has jobs. Default 1 s.
	Poll time.Duration
	// Work is what a job takes.
	Work Work

	line int
}

// Work is how long an attempt takes, and how often one fails.
type Work struct {
	// Mean duration. Default 100 ms.
	Mean time.Duration
	// Shape is fixed, exponential or lognormal; Sigma is of the last, default 0.5.
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

// Bounds of a scenario, so that a slip of the pen does not fill the memory.
const (
	maxJobs      = 20_000_000
	maxTenants   = 100_000
	maxProcesses = 10_000
	maxSlots     = 100_000
)

func oneOf(into *string, names ...string) reader {
	return func(n *yaml.Node) error {
		for _, name := range names {
			if n.Kind == yaml.ScalarNode && n.Value == name {
				*into = name
				return nil
			}
		}
		return faultAt(n, "%.60q is none of %v", n.Value, names)
	}
}
