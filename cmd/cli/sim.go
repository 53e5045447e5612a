package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/cmd/internal/sim"
)

// simFlags are the options of `sim`.
type simFlags struct {
	file, scenario, print string
	seed                  uint64
	top                   int
}

func (a *app) simCommand() *cobra.Command {
	var f simFlags
	command := &cobra.Command{
		Use:   "sim",
		Short: "Simulate a scenario on a virtual clock: duration and waits",
		Long: `Runs the claims and limits of the memory store, which obeys the rules of the others. Workers claim
as real ones do, on a virtual clock: days take seconds. Shows drain times, waits, fairness of
starts, and use of slots and rate. Checks every limit, and what the scenario expects. Exit code 0
if all holds, else 7.

Uses no database. Equal scenarios and seeds give equal reports. Without a scenario it lists the
included ones.`,
		Example: "  sluice sim\n  sluice sim --scenario payments-16h\n  sluice sim --print noisy-tenant > mine.yaml\n  sluice sim -f mine.yaml --seed 7 -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.sim(command.Context(), f)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "scenario file, YAML; - is standard input")
	flags.StringVar(&f.scenario, "scenario", "", "an included scenario")
	flags.StringVar(&f.print, "print", "", "print an included scenario, to start from")
	flags.Uint64Var(&f.seed, "seed", 0, "random seed, instead of the scenario's")
	flags.IntVar(&f.top, "top", 10, "tenants to print, longest waits first; -o json has all")
	command.MarkFlagsMutuallyExclusive("file", "scenario", "print")
	return command
}

func (a *app) sim(ctx context.Context, f simFlags) error {
	switch {
	case f.print != "":
		text, err := shipped(f.print)
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(text)
		return err
	case f.file == "" && f.scenario == "":
		return a.listScenarios()
	}
	scenario, err := a.readScenario(f)
	if err != nil {
		return err
	}
	if f.seed > 0 {
		scenario.Seed = f.seed
	}
	a.note("%s", strings.TrimSuffix(scenario.Name+": "+scenario.About, ": "))
	begun := time.Now()
	far := a.newProgress("", 0)
	report, err := sim.Watch(ctx, scenario, func(p sim.Progress) {
		far.say(fmt.Sprintf("%s of virtual time: %s came, %s ended", seconds(p.At.Seconds()), jobs(p.Jobs), draw.Count(p.Ended)))
	})
	far.leave()
	if err != nil {
		return err
	}
	a.note("%s of virtual time took %s\n", seconds(report.Seconds), draw.Duration(time.Since(begun)))
	if err := a.printOne(report, func() error { return a.printSim(report, f.top) }); err != nil {
		return err
	}
	if !report.Holds {
		return codedError{errors.New(brokenChecks(report)), exitCheckFailed, "change what the scenario sets, or what it expects"}
	}
	return nil
}

// readScenario reads the requested scenario.
func (a *app) readScenario(f simFlags) (sim.Scenario, error) {
	text, name, err := a.scenarioText(f)
	if err != nil {
		return sim.Scenario{}, err
	}
	scenario, err := sim.Parse(text)
	if err != nil {
		return sim.Scenario{}, codedError{fmt.Errorf("%s: %w", name, err), exitUsage, "`sluice sim --print payments-16h` shows how a scenario is written"}
	}
	if scenario.Name == "" {
		scenario.Name = name
	}
	return scenario, nil
}

func (a *app) scenarioText(f simFlags) (text []byte, name string, err error) {
	switch f.file {
	case "":
		text, err = shipped(f.scenario)
		return text, f.scenario, err
	case "-":
		text, err = io.ReadAll(a.stdin)
		return text, "standard input", err
	}
	if text, err = os.ReadFile(f.file); err != nil {
		return nil, "", codedError{err, exitUsage, "name a file that you may read with -f"}
	}
	return text, f.file, nil
}

func shipped(name string) ([]byte, error) {
	text, ok := sim.Text(name)
	if !ok {
		return nil, codedError{fmt.Errorf("there is no scenario %q; there are: %s", name, strings.Join(sim.Shipped(), ", ")), exitNotFound, "`sluice sim` lists them; a scenario of yours is read with -f"}
	}
	return text, nil
}

// shippedScenario is a row of the list.
type shippedScenario struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func (a *app) listScenarios() error {
	var list []shippedScenario
	for _, name := range sim.Shipped() {
		text, err := shipped(name)
		if err != nil {
			return err
		}
		scenario, err := sim.Parse(text)
		if err != nil {
			return err
		}
		sentence, _, _ := strings.Cut(scenario.About+" ", ". ")
		list = append(list, shippedScenario{name, strings.TrimSuffix(sentence, ".") + "."})
	}
	return printList(a, list, func(s shippedScenario) string { return s.Name }, []column[shippedScenario]{
		{"SCENARIO", func(s shippedScenario) string { return s.Name }, false},
		{"ABOUT", func(s shippedScenario) string { return s.About }, false},
	})
}

func brokenChecks(report sim.Report) string {
	var broken []string
	for _, c := range report.Checks {
		if !c.Holds {
			broken = append(broken, fmt.Sprintf("%s is %s, wanted %s", c.What, c.Got, c.Want))
		}
	}
	return strings.Join(broken, "; ")
}
