package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/internal/sim"
)

// Bounds of simulations, which use the server's processors: one runs at a time.
const (
	simulateTime  = 20 * time.Second
	simulatedJobs = 100_000
)

// simulations adds the routes of simulations.
func (a *API) simulations() {
	running := make(chan struct{}, 1)
	add(a, Route{
		Method: "GET", Path: "/simulations", Name: "list-scenarios", Group: "simulations", Summary: "list the included scenarios of simulations",
		Needs: access.Look, Commands: []string{"sim"}, scope: ofJobs,
	}, func(context.Context, *call, *nothing) (scenarioList, error) {
		out := scenarioList{}
		for _, name := range sim.Shipped() {
			text, _ := sim.Text(name)
			one := scenarioView{Name: name, Text: string(text)}
			if scenario, err := sim.Parse(text); err == nil {
				if err := tooLarge(scenario); err != nil {
					one.Refused = err.Rule + " --scenario " + name
				}
			}
			out.Scenarios = append(out.Scenarios, one)
		}
		return out, nil
	})
	add(a, Route{
		Method: "POST", Path: "/simulations", Name: "simulate", Group: "simulations", Summary: "simulate a scenario on a virtual clock",
		Text: fmt.Sprintf("Nothing is stored. A server runs one simulation at a time, of at most %d jobs and for at most %s. The command `sluice sim` has no bounds.",
			simulatedJobs, simulateTime),
		Needs: access.Operate, Commands: []string{"sim"}, scope: ofJobs, timeout: simulateTime + 10*time.Second,
	}, func(ctx context.Context, _ *call, in *simulateInput) (sim.Report, error) {
		scenario, err := sim.Parse([]byte(in.Body.Scenario))
		if err != nil {
			return sim.Report{}, &sluice.InvalidError{Field: "scenario", Rule: err.Error()}
		}
		if in.Body.Seed > 0 {
			scenario.Seed = in.Body.Seed
		}
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
		default:
			return sim.Report{}, problemOf(429, "busy", "another simulation runs", "send it again later").after(time.Second)
		}
		return simulate(ctx, scenario)
	})
}

// simulate runs a scenario within the bounds.
func simulate(ctx context.Context, scenario sim.Scenario) (sim.Report, error) {
	if err := tooLarge(scenario); err != nil {
		return sim.Report{}, err
	}
	ctx, stop := context.WithTimeout(ctx, simulateTime)
	defer stop()
	report, err := sim.Run(ctx, scenario)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return sim.Report{}, &sluice.InvalidError{Field: "scenario", Rule: "takes longer than " + simulateTime.String() + "; use sluice sim"}
	}
	return report, err
}

// tooLarge refuses a scenario with more jobs than a server simulates.
func tooLarge(scenario sim.Scenario) *sluice.InvalidError {
	if n := jobsOf(scenario); n > simulatedJobs {
		return &sluice.InvalidError{Field: "scenario", Rule: fmt.Sprintf("has %.0f jobs, more than %d; use sluice sim", n, simulatedJobs)}
	}
	return nil
}

// jobsOf counts the jobs that come in a scenario. A stream has about as many as its rate says.
func jobsOf(scenario sim.Scenario) (n float64) {
	for _, a := range scenario.Arrivals {
		n += float64(a.Jobs)
		if a.Rate.Jobs > 0 {
			n += float64(a.Rate.Jobs) * (a.To - a.From).Seconds() / a.Rate.Per.Seconds()
		}
	}
	return n
}

// scenarioList lists scenarios.
type scenarioList struct {
	// Scenarios come with the program.
	Scenarios []scenarioView `json:"scenarios"`
}

// scenarioView is a scenario.
type scenarioView struct {
	// Name names the scenario, and Text is what it says, in YAML.
	Name string `json:"name"`
	Text string `json:"text"`
	// Refused says why a server does not simulate it. Missing: it does.
	Refused string `json:"refused,omitempty"`
}

// simulateInput is a scenario to simulate.
type simulateInput struct{ Body simulateBody }

// simulateBody is a scenario.
type simulateBody struct {
	// Scenario is the scenario, in YAML; see docs/guide/simulate.md.
	Scenario string `json:"scenario" minLength:"1" maxLength:"65536"`
	// Seed is the seed of every random choice. Default: the scenario's.
	Seed uint64 `json:"seed,omitempty"`
}
