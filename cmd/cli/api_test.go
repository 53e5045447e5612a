package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// notOverHTTP lists the commands that the HTTP API does not offer, each with the reason.
var notOverHTTP = map[string]string{
	"serve": aProcess, "work": aProcess, "dispatch": aProcess, "upkeep": aProcess, "forward": aProcess, "dev": aProcess, "demo": aProcess, "demo-worker": aProcess,
	"guard-programs": aProcess, "config show": "shows the settings of this command line", "probe": "asks a server for its health, which needs no token",
	"forward status": "reads the database of a producer, which is another store",
	"migrate":        "makes the tables without which a server does not start", "move": "reads and writes two stores, while no server works",
	"version":    "tells of the program itself",
	"completion": ofShell, "completion bash": ofShell, "completion zsh": ofShell, "completion fish": ofShell, "completion powershell": ofShell,
	"export grafana-dashboard": ofProgram, "export prometheus-rules": ofProgram,
}

const (
	aProcess  = "is a process of its machine, which a request cannot start"
	ofShell   = "writes a script for a shell"
	ofProgram = "writes a file that is part of the program, the same for every store"
)

// TestTheAPIDoesWhatTheCommandsDo walks through the commands. Each has a route, or a reason to have none.
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
