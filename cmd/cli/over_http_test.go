package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice/cmd/cli"
)

// clock are the parts of outputs that the time of the call decides.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d(:[\d.]+)?Z|"[a-z_]*(seconds|rate|per_second|progress)": *[\d.e-]+|\d+(\.\d+)?(ms|s|µs)\b`)

// answerOf gives what a command prints at an address, without what its time decides.
func answerOf(t *testing.T, db string, args ...string) (text string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sluice", args...)
	cmd.Env = append(os.Environ(), "SLUICE_DB="+db)
	out, _ := cmd.CombinedOutput()
	return clock.ReplaceAllString(string(out), "T"), cmd.ProcessState.ExitCode()
}

// sameOverHTTP are commands that only read, with the arguments to try. ID is an operation.
var sameOverHTTP = map[string]string{
	"jobs": "", "queues": "", "stats": "mail", "forecast": "mail", "operations ls": "", "operations get": "ID", "operations watch": "ID",
	"dead groups": "", "dead note": "9ac1f00d", "audit": "--limit 3", "batches ls": "", "flows ls": "", "limits ls": "", "schedules ls": "", "alerts history": "",
}

// notYetOverHTTP are commands whose requests the store over HTTP does not send yet, with arguments to try.
var notYetOverHTTP = map[string]string{
	"tenants": "", "tiers": "", "tiers add": "gold", "tiers preset": "", "tenants set": "acme --tier gold",
	"alerts ls": "", "alerts rules": "", "alerts silences": "", "alerts test": "", "alerts silence": "--all --for 2h --reason x",
	"holders quiesce": "--all --reason x", "queues policy": "", "tokens ls": "", "audit head": "", "audit verify": "", "audit keep": "",
}

// TestReadsOverHTTPAreThoseOfTheDatabase compares what commands print of a store and of its server.
func TestReadsOverHTTPAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	for range 3 {
		run(t, db, "enqueue", "mail", `{"to":"ada"}`, "--tenant", "acme")
	}
	s := serve(t, db)
	began := run(t, s.url, "hold", "--all", "--queue", "mail", "--reason", "audit", "--detach", "-o", "json")
	id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).FindString(began)
	run(t, s.url, "operations", "watch", id)
	run(t, s.url, "dead", "note", "9ac1f00d", "--text", "DNS", "--owner", "bo", "--resolved")
	for name, rest := range sameOverHTTP {
		args := strings.Fields(strings.ReplaceAll(name+" "+rest, "ID", id))
		for _, args := range [][]string{args, append(args, "-o", "json")} {
			var here, there string
			for range 20 { // the server's upkeep may change a figure between the two
				var code, other int
				here, code = answerOf(t, db, args...)
				there, other = answerOf(t, s.url, args...)
				if code == 0 && other == 0 && here == there {
					break
				}
			}
			if here != there || here == "" {
				t.Errorf("%v over HTTP:\n%s\non the database:\n%s", args, there, here)
			}
		}
	}
	for name, rest := range notYetOverHTTP {
		args := strings.Fields(name + " " + rest)
		if text, code := answerOf(t, s.url, args...); code == 0 || !strings.Contains(text, "not possible over HTTP") || !strings.Contains(text, "open the database") {
			t.Errorf("%v: %d %s", args, code, text)
		}
	}
}

// TestCommandsTriedOverHTTPExist keeps the lists true.
func TestCommandsTriedOverHTTPExist(t *testing.T) {
	t.Parallel()
	there := make(map[string]bool)
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		there[strings.TrimPrefix(command.CommandPath(), "sluice ")] = true
		for _, sub := range command.Commands() {
			walk(sub)
		}
	}
	walk(cli.Root())
	for _, list := range []map[string]string{sameOverHTTP, notYetOverHTTP} {
		for name := range list {
			if !there[name] || notOverHTTP[name] != "" {
				t.Errorf("`sluice %s` is no command, or one that the API does not do", name)
			}
		}
	}
}
