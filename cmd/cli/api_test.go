package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// notOverHTTP are the commands that the HTTP API does not do, each for its reason.
var notOverHTTP = map[string]string{
	"demo": ofMachine, "demo-worker": ofMachine, "guard-programs": ofMachine, "dispatch": ofMachine, "upkeep": ofMachine, "serve": ofMachine, "work": ofMachine,
	"forward": ofMachine, "forward status": ofMachine, "migrate": ofMachine, "move": ofMachine, "probe": ofMachine, "version": ofMachine, "sim": ofMachine, "top": ofMachine,
	"completion": ofMachine, "completion bash": ofMachine, "completion zsh": ofMachine, "completion fish": ofMachine, "completion powershell": ofMachine,
	"export grafana-dashboard": ofMachine, "export prometheus-rules": ofMachine,

	"alerts disable": notYet, "alerts enable": notYet, "alerts history": notYet, "alerts ls": notYet, "alerts reset": notYet,
	"alerts rules": notYet, "alerts set": notYet, "alerts silence": notYet, "alerts silences": notYet, "alerts test": notYet, "alerts unsilence": notYet,
	"ask-engine": notYet, "audit head": notYet, "audit keep": notYet, "audit verify": notYet, "dead": notYet,
	"engine check": notYet, "engine reconcile": notYet, "queues policy": notYet, "runs": notYet, "schedules backfill": notYet,
	"schedules delete": notYet, "schedules lift": notYet, "schedules ls": notYet, "schedules pause": notYet, "schedules resume": notYet, "schedules set": notYet,
	"schedules show": notYet, "schedules trigger": notYet, "schedules undo": notYet, "tenants": notYet, "tenants delete": notYet,
	"tenants set": notYet, "tiers": notYet, "tiers add": notYet, "tiers delete": notYet, "tiers preset": notYet, "tiers set": notYet,
	"limits ls": notYet, "limits get": notYet, "limits set": notYet, "limits close": notYet, "limits open": notYet, "limits delete": notYet,
	"flows ls": notYet, "flows show": notYet, "flows start": notYet,
	"batches ls": notYet, "batches show": notYet, "batches open": notYet, "batches close": notYet, "batches cancel": notYet, "batches pause": notYet, "batches resume": notYet, "batches retry": notYet,
}

// ofMachine is the reason of commands that are processes, or need files, a terminal or a shell of their machine.
const ofMachine = "of the machine"

// notYet is the reason of commands that the API is to do.
const notYet = "not yet"

// mostNotYet is how many there are. It only falls.
const mostNotYet = 55

// TestTheAPIDoesWhatTheCommandsDo walks the commands. Each has a route, or a reason to have none.
func TestTheAPIDoesWhatTheCommandsDo(t *testing.T) {
	t.Parallel()
	routed := make(map[string]bool)
	for _, route := range httpapi.Routes() {
		for _, command := range route.Commands {
			routed[command] = true
		}
	}
	there := make(map[string]bool)
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		name := strings.TrimPrefix(command.CommandPath(), "sluice ")
		there[name] = true
		holdsOthers := command.HasSubCommands() && !strings.Contains(command.Use, " ") && command.Args(command, nil) == nil && command.Args(command, []string{"x"}) == nil
		if holdsOthers && notOverHTTP[name] != "" {
			t.Errorf("`sluice %s` only holds other commands: delete its exception", name)
		}
		if !holdsOthers && command.HasParent() && !routed[name] && notOverHTTP[name] == "" {
			t.Errorf("`sluice %s` has neither a route nor a reason to have none", name)
		}
		if routed[name] && notOverHTTP[name] != "" {
			t.Errorf("`sluice %s` has a route: delete its exception", name)
		}
		for _, sub := range command.Commands() {
			walk(sub)
		}
	}
	walk(cli.Root())
	left := 0
	for _, why := range notOverHTTP {
		if why == notYet {
			left++
		}
	}
	if left != mostNotYet {
		t.Errorf("%d commands have no route yet, want mostNotYet, %d: add routes, and lower it", left, mostNotYet)
	}
	var names []string
	for name := range routed {
		names = append(names, name)
	}
	for name := range notOverHTTP {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !there[name] {
			t.Errorf("there is no command `sluice %s`", name)
		}
	}
}
